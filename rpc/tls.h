// Mutual TLS 1.3: both sides present a certificate that the cluster's authority signed.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace boost::asio::ssl {
class context;
}

namespace tierpilot {

// Paths of PEM files. `certificate` may carry its chain.
struct TlsFiles {
  std::string ca, certificate, key;
};

enum class TlsSide { kServer, kClient };

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

// Reads the files; a message names the one that is missing, malformed or does not fit the others.
Result<TlsContext> make_tls_context(TlsSide side, const TlsFiles& files);

}  // namespace tierpilot

// Mutual TLS 1.3: both sides present a certificate that the cluster's authority signed.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace boost::asio::ssl {
class context;
}

namespace tierpilot {

// Paths of PEM files. `certificate` may carry its chain. The key may be "fd:N", a file that the
// process was started with open as descriptor N. `crl` holds the revocation lists of every
// authority in use; empty: none is looked at.
struct TlsFiles {
  std::string ca, certificate, key, crl{};
};

enum class TlsSide { kServer, kClient };

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

// What the files hold, and who is connected by it. Owned by the event loop's thread.
class TlsIdentity {
 public:
  // An error names the file that is missing, malformed or does not fit the others.
  static Result<std::shared_ptr<TlsIdentity>> load(TlsFiles files);
  ~TlsIdentity();

  // For new connections.
  const TlsContext& context(TlsSide side) const;
  // Rises with each reload that took something new.
  uint64_t generation() const { return generation_; }

  // Reads the files again. What they hold counts for new connections; old ones whose peer is not
  // trusted by it any more (revoked, expired, of another authority) are closed. On an error all
  // stays as it was.
  Status reload();
  // Closes connections whose peer is not trusted any more by what was read, as time has passed.
  void close_distrusted();
  // Why the peer of a handshake that is done is not trusted by what is read now, which may be newer
  // than what the handshake began with; empty: it is.
  std::string distrusts(SSL* connection) const;
  // Whether the files have changed since they were read last, and not since this was asked last.
  bool settled_change();

  // A connection after the handshake: `close` tells whether it is still there, and ends it if it
  // is told why.
  using Close = std::function<bool(const std::string& why)>;
  void watch(SSL* connection, Close close);

 private:
  struct Contents;
  struct Connection;
  explicit TlsIdentity(TlsFiles files);
  std::vector<std::string> look() const;

  const TlsFiles files_;
  std::unique_ptr<Contents> contents_;
  std::vector<Connection> connections_;
  size_t pruned_size_ = 0;                // of connections_, when the ended ones were left out last
  std::vector<std::string> read_, seen_;  // how the files looked
  uint64_t generation_ = 1;
};

// Null: without TLS.
using Tls = std::shared_ptr<TlsIdentity>;

}  // namespace tierpilot

// The bytes of TLS files. For rpc/tls/tls.cc.
#pragma once

#include <openssl/x509.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "rpc/tls/tls.h"

namespace tierpilot {

using Crl = std::unique_ptr<X509_CRL, decltype(&::X509_CRL_free)>;

// Leaves nothing of it in memory.
struct SecretText {
  SecretText() = default;
  explicit SecretText(std::string secret) : text(std::move(secret)) {}
  SecretText(SecretText&&) noexcept = default;
  SecretText& operator=(SecretText&&) noexcept = default;
  ~SecretText();
  std::string text;
};

struct TlsTexts {
  std::string ca, certificate, crl;
  SecretText key;

  static Result<TlsTexts> read(const TlsFiles& files);
};

// Each list of the text, signed by an authority of it if that is there. Warns of such as are out of
// date. kInvalid: one is malformed or signed by nobody, or there is none of these authorities'.
Result<std::vector<Crl>> read_lists(const TlsFiles& files, const TlsTexts& texts);

// False: it is not there. An empty path is not.
bool stat_tls_file(const std::string& path, struct stat& info);

}  // namespace tierpilot

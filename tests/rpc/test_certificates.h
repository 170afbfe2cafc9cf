// A certificate authority for tests: keys and certificates made with OpenSSL, valid for an hour.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <filesystem>
#include <memory>
#include <string>

#include "rpc/tls.h"

namespace tierpilot::test {

class TestAuthority {
 public:
  // Writes `name`-ca.pem into `folder`; what it issues goes there too.
  TestAuthority(std::filesystem::path folder, const std::string& name);

  // A certificate with subject CN `name`; `names` as in OpenSSL's subjectAltName:
  // "DNS:localhost,IP:127.0.0.1".
  TlsFiles issue(const std::string& name, const std::string& names) const;

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&::X509_free)>;

  static Key make_key();
  Certificate make_certificate(const std::string& name, EVP_PKEY* key, const std::string& extension,
                               const std::string& value) const;

  std::filesystem::path folder_, ca_path_;
  Key key_;
  Certificate certificate_;
};

}  // namespace tierpilot::test

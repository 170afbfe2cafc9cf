// A certificate authority for tests: keys and certificates made with OpenSSL.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rpc/tls/tls.h"

namespace tierpilot::test {

// From and until when a certificate is valid, seen from now. So long that a clock may be set.
struct Validity {
  static constexpr long kDay_s = 86'400;
  long from_s = -30 * kDay_s, until_s = 30 * kDay_s;
};

class TestAuthority {
 public:
  // Writes `name`-ca.pem into `folder`; what it issues goes there too.
  TestAuthority(std::filesystem::path folder, const std::string& name);

  // A certificate with subject CN `name`; `names` as in OpenSSL's subjectAltName:
  // "DNS:localhost,IP:127.0.0.1".
  // The same again replaces it by another one.
  TlsFiles issue(const std::string& name, const std::string& names, Validity validity = {}) const;
  // A list of these certificates, from now on (and until `valid_seconds` from now), in
  // `name`-crl.pem; gives its path.
  std::string revoke(const std::vector<std::string>& certificates, long valid_seconds = 3600) const;

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&::X509_free)>;

  static Key make_key();
  Certificate make_certificate(const std::string& name, EVP_PKEY* key, const std::string& extension,
                               const std::string& value, Validity validity) const;

  std::filesystem::path folder_, ca_path_, crl_path_;
  Key key_;
  Certificate certificate_;
};

}  // namespace tierpilot::test

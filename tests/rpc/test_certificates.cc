#include "tests/rpc/test_certificates.h"

#include <kj/debug.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>

namespace tierpilot::test {
namespace {

std::unique_ptr<FILE, decltype(&::fclose)> open_for_writing(const std::filesystem::path& path) {
  std::unique_ptr<FILE, decltype(&::fclose)> file(std::fopen(path.c_str(), "w"), &::fclose);
  KJ_REQUIRE(file != nullptr);
  return file;
}

void write_certificate(const std::filesystem::path& path, X509* certificate) {
  KJ_REQUIRE(PEM_write_X509(open_for_writing(path).get(), certificate));
}

}  // namespace

TestAuthority::TestAuthority(std::filesystem::path folder, const std::string& name)
    : folder_(std::move(folder)),
      ca_path_(folder_ / (name + "-ca.pem")),
      crl_path_(folder_ / (name + "-crl.pem")),
      key_(make_key()),
      certificate_(nullptr, &::X509_free) {
  certificate_ = make_certificate(name, key_.get(), "basicConstraints", "critical,CA:TRUE", {});
  write_certificate(ca_path_, certificate_.get());
}

TlsFiles TestAuthority::issue(const std::string& name, const std::string& names,
                              Validity validity) const {
  const Key key = make_key();
  const Certificate certificate =
      make_certificate(name, key.get(), "subjectAltName", names, validity);
  const auto certificate_path = folder_ / (name + ".pem");
  const auto key_path = folder_ / (name + ".key");
  write_certificate(certificate_path, certificate.get());
  KJ_REQUIRE(PEM_write_PrivateKey(open_for_writing(key_path).get(), key.get(), nullptr, nullptr, 0,
                                  nullptr, nullptr));
  return {ca_path_.string(), certificate_path.string(), key_path.string()};
}

std::string TestAuthority::revoke(const std::vector<std::string>& certificates,
                                  long valid_seconds) const {
  using Time = std::unique_ptr<ASN1_TIME, decltype(&::ASN1_TIME_free)>;
  const std::unique_ptr<X509_CRL, decltype(&::X509_CRL_free)> list(X509_CRL_new(),
                                                                   &::X509_CRL_free);
  const Time past(X509_gmtime_adj(nullptr, Validity().from_s), &::ASN1_TIME_free);
  const Time next(X509_gmtime_adj(nullptr, valid_seconds), &::ASN1_TIME_free);
  X509_CRL_set_version(list.get(), 1);
  X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(certificate_.get()));
  X509_CRL_set1_lastUpdate(list.get(), past.get());
  X509_CRL_set1_nextUpdate(list.get(), next.get());
  for (const auto& path : certificates) {
    const std::unique_ptr<FILE, decltype(&::fclose)> file(std::fopen(path.c_str(), "r"), &::fclose);
    const Certificate revoked(PEM_read_X509(file.get(), nullptr, nullptr, nullptr), &::X509_free);
    KJ_REQUIRE(revoked != nullptr, path);
    X509_REVOKED* entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked.get()));
    X509_REVOKED_set_revocationDate(entry, past.get());
    X509_CRL_add0_revoked(list.get(), entry);
  }
  X509_CRL_sort(list.get());
  KJ_REQUIRE(X509_CRL_sign(list.get(), key_.get(), EVP_sha256()) > 0);
  // In one step: who reads it meanwhile has the old one or this.
  const auto fresh = crl_path_.string() + ".new";
  KJ_REQUIRE(PEM_write_X509_CRL(open_for_writing(fresh).get(), list.get()));
  std::filesystem::rename(fresh, crl_path_);
  return crl_path_.string();
}

TestAuthority::Key TestAuthority::make_key() {
  return {EVP_EC_gen("P-256"), &::EVP_PKEY_free};
}

TestAuthority::Certificate TestAuthority::make_certificate(const std::string& name, EVP_PKEY* key,
                                                           const std::string& extension,
                                                           const std::string& value,
                                                           Validity validity) const {
  Certificate certificate(X509_new(), &::X509_free);
  X509* raw = certificate.get();
  X509_set_version(raw, X509_VERSION_3);
  static long serial = 1;
  ASN1_INTEGER_set(X509_get_serialNumber(raw), serial++);
  X509_gmtime_adj(X509_getm_notBefore(raw), validity.from_s);
  X509_gmtime_adj(X509_getm_notAfter(raw), validity.until_s);
  X509_set_pubkey(raw, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(raw), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* issuer = certificate_ ? certificate_.get() : raw;
  X509_set_issuer_name(raw, X509_get_subject_name(issuer));
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, raw, nullptr, nullptr, 0);
  X509_EXTENSION* added = X509V3_EXT_conf(nullptr, &context, extension.c_str(), value.c_str());
  KJ_REQUIRE(added != nullptr, value);
  X509_add_ext(raw, added, -1);
  X509_EXTENSION_free(added);
  KJ_REQUIRE(X509_sign(raw, key_.get(), EVP_sha256()) > 0);
  return certificate;
}

}  // namespace tierpilot::test

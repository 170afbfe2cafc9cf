#include "rpc/tls/tls_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>

#include "base/log.h"
#include "base/unique_fd.h"

namespace tierpilot {
namespace {

constexpr size_t kMostBytes = 16 << 20;
constexpr std::string_view kDescriptor = "fd:";

using Bio = std::unique_ptr<BIO, decltype(&::BIO_free_all)>;
using Certificate = std::unique_ptr<X509, decltype(&::X509_free)>;

std::optional<int> descriptor_of(const std::string& path) {
  int fd = -1;
  const char* end = path.data() + path.size();
  if (!path.starts_with(kDescriptor)) return std::nullopt;
  const auto read = std::from_chars(path.data() + kDescriptor.size(), end, fd);
  return read.ec == std::errc{} && read.ptr == end && fd >= 0 ? std::optional(fd) : std::nullopt;
}

Result<std::string> read_all(int fd, const std::string& what) {
  std::string text;
  char buffer[4096];
  // From the begin each time: what came as a descriptor is read again at a reload.
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, buffer, sizeof buffer, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, what);
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
    at += got;
    if (text.size() > kMostBytes) return fail(ErrorCode::kInvalid, what + ": is too large");
  }
  OPENSSL_cleanse(buffer, sizeof buffer);
  return text;
}

Result<std::string> read_file(const char* kind, const std::string& path) {
  const auto what = fmt::format("TLS {} '{}' cannot be used", kind, path);
  const auto given = descriptor_of(path);
  UniqueFd opened;
  if (!given) opened.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!given && !opened) {
    auto error = fail_errno(errno, what);
    error.value().code = ErrorCode::kInvalid;
    return error;
  }
  auto text = read_all(given ? *given : opened.get(), what);
  if (!text) return fail(ErrorCode::kInvalid, text.error().message);
  return text;
}

Bio reader(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &::BIO_free_all};
}

std::vector<Certificate> certificates_in(const std::string& text) {
  std::vector<Certificate> found;
  const auto from = reader(text);
  while (X509* next = PEM_read_bio_X509(from.get(), nullptr, nullptr, nullptr))
    found.emplace_back(next, &::X509_free);
  ERR_clear_error();
  return found;
}

X509* issuer_of(X509_CRL* list, const std::vector<Certificate>& authorities) {
  for (const auto& authority : authorities)
    if (X509_NAME_cmp(X509_get_subject_name(authority.get()), X509_CRL_get_issuer(list)) == 0)
      return authority.get();
  return nullptr;
}

void warn_if_old(const std::string& path, X509_CRL* list) {
  const ASN1_TIME* next = X509_CRL_get0_nextUpdate(list);
  if (next && X509_cmp_current_time(next) < 0)
    spdlog::warn(
        "revocation list '{}' is out of date: it counts as it is, and who was revoked "
        "since is let in",
        path);
}

}  // namespace

SecretText::~SecretText() {
  OPENSSL_cleanse(text.data(), text.size());
}

Result<TlsTexts> TlsTexts::read(const TlsFiles& files) {
  TlsTexts texts;
  std::string key;
  const std::tuple<const char*, const std::string&, std::string&> parts[] = {
      {"authority", files.ca, texts.ca},
      {"certificate", files.certificate, texts.certificate},
      {"key", files.key, key},
      {"revocation list", files.crl, texts.crl}};
  for (const auto& [kind, path, text] : parts) {
    if (path.empty() && &path == &files.crl) continue;
    auto read = read_file(kind, path);
    if (!read) return tl::unexpected(read.error());
    text = std::move(*read);
  }
  texts.key = SecretText(std::move(key));
  return texts;
}

Result<std::vector<Crl>> read_lists(const TlsFiles& files, const TlsTexts& texts) {
  std::vector<Crl> lists;
  if (files.crl.empty()) return lists;
  const auto refused = [&](const char* why) {
    return fail(ErrorCode::kInvalid,
                fmt::format("TLS revocation list '{}' cannot be used: {}", files.crl, why));
  };
  const auto from = reader(texts.crl);
  while (X509_CRL* next = PEM_read_bio_X509_CRL(from.get(), nullptr, nullptr, nullptr))
    lists.emplace_back(next, &::X509_CRL_free);
  const auto last = ERR_GET_REASON(ERR_peek_last_error());
  ERR_clear_error();
  if (last != PEM_R_NO_START_LINE) return refused("it is malformed");
  const auto authorities = certificates_in(texts.ca);
  bool any = false;
  for (const auto& list : lists) {
    X509* issuer = issuer_of(list.get(), authorities);
    any |= issuer != nullptr;
    if (issuer && X509_CRL_verify(list.get(), X509_get0_pubkey(issuer)) != 1)
      return refused("its signature is not the authority's");
    warn_if_old(files.crl, list.get());
  }
  if (!any) return refused("it has no list of an authority of [tls] ca");
  return lists;
}

bool stat_tls_file(const std::string& path, struct stat& info) {
  if (const auto given = descriptor_of(path)) return ::fstat(*given, &info) == 0;
  return !path.empty() && ::stat(path.c_str(), &info) == 0;
}

}  // namespace tierpilot

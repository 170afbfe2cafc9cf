#include "tools/tierctl/pseudonym.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cerrno>
#include <fstream>

namespace tierpilot::tierctl {
namespace {

constexpr size_t kMinKeyBytes = 16;
constexpr size_t kMaxKeyBytes = 4096;
constexpr size_t kShownBytes = 8;

Result<std::string> read_key(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail_errno(errno, "key " + path);
  std::string key(kMaxKeyBytes, '\0');
  in.read(key.data(), static_cast<std::streamsize>(key.size()));
  key.resize(static_cast<size_t>(in.gcount()));
  if (key.size() < kMinKeyBytes)
    return fail(ErrorCode::kInvalid,
                fmt::format("key {}: it has {} bytes: at least {} are needed, as of "
                            "'openssl rand -out FILE 32'",
                            path, key.size(), kMinKeyBytes));
  return key;
}

}  // namespace

Result<Pseudonyms> Pseudonyms::make(bool anonymise, const std::string& key_file) {
  Pseudonyms names;
  if (!anonymise) return names;
  if (!key_file.empty()) {
    auto key = read_key(key_file);
    if (!key) return tl::unexpected(key.error());
    names.key_ = std::move(*key);
    return names;
  }
  names.keep_ = false;
  names.key_.resize(32);
  if (RAND_bytes(reinterpret_cast<unsigned char*>(names.key_.data()), 32) != 1)
    return fail(ErrorCode::kUnavailable, "no random key for pseudonyms can be drawn");
  return names;
}

std::string Pseudonyms::of(std::string_view kind, std::string_view name) const {
  if (!anonymous() || name.empty()) return std::string(name);
  const std::string text = fmt::format("{}:{}", kind, name);
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash, &size);
  std::string pseudonym(kind);
  pseudonym += '-';
  for (size_t i = 0; i < kShownBytes; ++i) pseudonym += fmt::format("{:02x}", hash[i]);
  return pseudonym;
}

}  // namespace tierpilot::tierctl

#include "base/content_digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>
#include <new>

namespace tierpilot {
namespace {

constexpr size_t kHalfDigits = 16;

std::optional<uint64_t> parse_half(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string to_string(const ContentDigest& digest) {
  return digest.known() ? fmt::format("{:016x}{:016x}", digest.high, digest.low) : "";
}

std::optional<ContentDigest> parse_content_digest(std::string_view text) {
  if (text.empty()) return ContentDigest{};
  if (text.size() != 2 * kHalfDigits) return std::nullopt;
  const auto high = parse_half(text.substr(0, kHalfDigits));
  const auto low = parse_half(text.substr(kHalfDigits));
  if (!high || !low) return std::nullopt;
  const ContentDigest digest{*high, *low};
  if (to_string(digest) != text) return std::nullopt;
  return digest;
}

struct ContentHasher::State {
  XXH3_state_t* of = XXH3_createState();
  ~State() { XXH3_freeState(of); }
};

ContentHasher::ContentHasher() : state_(std::make_unique<State>()) {
  if (!state_->of) throw std::bad_alloc();
  reset();
}

ContentHasher::~ContentHasher() = default;

void ContentHasher::reset() {
  XXH3_128bits_reset(state_->of);
}

void ContentHasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->of, bytes.data(), bytes.size());
}

ContentDigest ContentHasher::digest() const {
  const auto hash = XXH3_128bits_digest(state_->of);
  const ContentDigest digest{hash.high64, hash.low64};
  return digest.known() ? digest : ContentDigest{0, 1};
}

ContentDigest digest_of(std::string_view bytes) {
  ContentHasher hasher;
  hasher.add(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return hasher.digest();
}

}  // namespace tierpilot

// What bytes are the same: a 128-bit checksum of a dataset's content, XXH3-128 of xxHash 0.8 (Yann
// Collet, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). It finds damage and
// tells versions of one number apart; it is no defence against who makes collisions on purpose.
// BLAKE3 would be, and is not in Debian 12; its cryptographic hashes are several times slower than
// a copy between memory tiers.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tierpilot {

struct ContentDigest {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const ContentDigest&) const = default;
  // All zero: nobody has said.
  bool known() const { return high != 0 || low != 0; }
};

// 32 lower-case hexadecimal digits, as xxhsum -H128 prints it; "" for an unknown one.
std::string to_string(const ContentDigest& digest);
// Only what to_string writes.
std::optional<ContentDigest> parse_content_digest(std::string_view text);

// Takes the content piece by piece, in order.
class ContentHasher {
 public:
  ContentHasher();
  ~ContentHasher();
  void add(std::span<const std::byte> bytes);
  void reset();
  // Of all that was added since the last reset; always known.
  ContentDigest digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

ContentDigest digest_of(std::string_view bytes);

}  // namespace tierpilot

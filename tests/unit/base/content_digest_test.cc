#include "base/content_digest.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

// As `xxhsum -H128` of Debian prints them.
TEST(ContentDigest, IsXxh3Of128Bits) {
  EXPECT_EQ(to_string(digest_of("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(to_string(digest_of("abc")), "06b05ab6733a618578af5f94892f3950");
}

TEST(ContentDigest, PiecesMakeTheWhole) {
  const std::string whole(3'000'001, 'x');
  ContentHasher hasher;
  for (size_t at = 0; at < whole.size(); at += 70'001) {
    const auto piece = std::string_view(whole).substr(at, 70'001);
    hasher.add(std::as_bytes(std::span(piece.data(), piece.size())));
  }
  EXPECT_EQ(hasher.digest(), digest_of(whole));
  hasher.reset();
  EXPECT_EQ(hasher.digest(), digest_of(""));
}

TEST(ContentDigest, TextGoesBothWaysAndOnlyThatText) {
  const auto digest = digest_of("abc");
  EXPECT_EQ(parse_content_digest(to_string(digest)), digest);
  EXPECT_EQ(parse_content_digest(""), ContentDigest{});
  EXPECT_FALSE(ContentDigest{}.known());
  for (const auto* text :
       {"0", "99AA06D3014798D86001C324468D497F", "99aa06d3014798d86001c324468d497",
        "99aa06d3014798d86001c324468d497fa", "0x9a06d3014798d86001c324468d497f",
        "00000000000000000000000000000000", "99aa06d3014798d 6001c324468d497f"})
    EXPECT_FALSE(parse_content_digest(text)) << text;
}

}  // namespace
}  // namespace tierpilot

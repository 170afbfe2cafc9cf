#include "base/swap_tier_words.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

using Kind = SwapTierWords::Kind;

TEST(SwapTierWords, SayWhereAndHowMuch) {
  const auto node = parse_swap_tier("node12=2GiB");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->kind, Kind::kNode);
  EXPECT_EQ(node->node, 12);
  EXPECT_EQ(node->bytes, 2ULL << 30);
  EXPECT_EQ(node->name(), "node12");
  const auto directory = parse_swap_tier("dir:/srv/a=b/slow=1048576");
  ASSERT_TRUE(directory) << directory.error().message;
  EXPECT_EQ(directory->kind, Kind::kDirectory);
  EXPECT_EQ(directory->directory, "/srv/a=b/slow");
  EXPECT_EQ(directory->bytes, 1ULL << 20);
  EXPECT_EQ(directory->name(), "dir:/srv/a=b/slow");
  const auto memory = parse_swap_tier("memory=64TiB");
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(memory->kind, Kind::kMemory);
  EXPECT_EQ(memory->name(), "memory");
}

TEST(SwapTierWords, NameTheEntryThatIsWrong) {
  for (const char* wrong :
       {"", "node1", "=1GiB", "node=1GiB", "node-1=1GiB", "node1x=1GiB", "node99999999999=1GiB",
        "dir:=1GiB", "disk=1GiB", "memory=1", "memory=65TiB", "memory=much", "dir:/a="}) {
    const auto tier = parse_swap_tier(wrong);
    ASSERT_FALSE(tier) << wrong;
    EXPECT_EQ(tier.error().code, ErrorCode::kInvalid);
    EXPECT_NE(tier.error().message.find("'" + std::string(wrong) + "'"), std::string::npos)
        << tier.error().message;
  }
}

}  // namespace
}  // namespace tierpilot

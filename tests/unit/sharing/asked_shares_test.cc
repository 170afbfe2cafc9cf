// Best-effort jobs that have, or could use, more than their users asked for.
#include "tests/unit/sharing/live_scene.h"

namespace tierpilot::sharing {
namespace {

// Asked for 300, and used all while nobody else was there.
TEST(AskedShares, WhatIsBeyondAnAskedShareIsGivenBackToWhoWaits) {
  auto grown = running(1, kBestEffort, 1000, 1000);
  grown.own_milli = 300;
  const std::vector<LiveNode> nodes{{unit_with({grown})}};
  const auto start = policy("share")->place(nodes, waiting(kBestEffort, 600, 10));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->share.milli, 600U);
  ASSERT_EQ(start->shrunk.size(), 1U);
  EXPECT_EQ(start->shrunk[0], (std::pair<uint64_t, uint32_t>(1, 400)));
  EXPECT_TRUE(start->preempted.empty());
  EXPECT_EQ(policy("share")->refusal(nodes[0][0], waiting(kBestEffort, 600, 10)), "");
  grown.own_milli = kWholeUnit;
  EXPECT_FALSE(policy("share")->place({{unit_with({grown})}}, waiting(kBestEffort, 600, 10)));
}

TEST(AskedShares, WhoCanUseMoreThanItAskedForHasItInProportion) {
  auto small = running(1, kBestEffort, 300, 1000), large = running(2, kBestEffort, 600, 1000);
  small.own_milli = 300;
  large.own_milli = 600;
  const auto unit = unit_with({small, large});
  const auto adjusted = policy("share")->adjust(unit);
  EXPECT_NEAR(milli_of(unit, adjusted, 1), 367, 1) << "100 each, and the rest as one to two";
  EXPECT_NEAR(milli_of(unit, adjusted, 2), 633, 1);
  expect_within(unit, adjusted);
}

}  // namespace
}  // namespace tierpilot::sharing

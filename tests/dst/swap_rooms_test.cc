// What the judge says of room for swapping that processes are given.
#include <gtest/gtest.h>

#include "tests/dst/judge/judge.h"

namespace tierpilot::dst {
namespace {

constexpr AttemptId kOne{1, 1}, kOther{2, 1};

class SwapRoomsTest : public ::testing::Test {
 protected:
  SwapRoomsTest() { rooms_.offered(0, {tier(2, 10), tier(1, 20)}); }
  static SwapTierWords tier(int node, uint64_t bytes) {
    return {SwapTierWords::Kind::kNode, node, {}, bytes};
  }
  std::string found() const { return judge_.verdict() ? judge_.verdict()->invariant : ""; }

  Judge judge_{{}};
  SwapRooms& rooms_ = judge_.swap_rooms();
};

TEST_F(SwapRoomsTest, TheFastestFirstAndNoMoreThanThereIs) {
  rooms_.given(0, kOne, 15, {tier(2, 10), tier(1, 5)});
  rooms_.given(0, kOther, 15, {tier(1, 15)});
  rooms_.ended(0, kOne);
  rooms_.given(0, {3, 1}, 10, {tier(2, 10)});
  EXPECT_EQ(found(), "");
}

TEST_F(SwapRoomsTest, ATierThatIsGivenTwice) {
  rooms_.given(0, kOne, 10, {tier(2, 10)});
  rooms_.given(0, kOther, 1, {tier(2, 1)});
  EXPECT_EQ(found(), "over-room");
}

TEST_F(SwapRoomsTest, ASlowerTierWhereAFasterOneIsLeft) {
  rooms_.given(0, kOne, 5, {tier(1, 5)});
  EXPECT_EQ(found(), "over-room");
}

TEST_F(SwapRoomsTest, LessThanWasAskedFor) {
  rooms_.given(0, kOne, 6, {tier(2, 5)});
  EXPECT_EQ(found(), "over-room");
}

TEST_F(SwapRoomsTest, ADaemonThatLacksWhatItWasToGive) {
  rooms_.lacked(0, kOne, "0 B are left");
  EXPECT_EQ(found(), "over-room");
}

}  // namespace
}  // namespace tierpilot::dst

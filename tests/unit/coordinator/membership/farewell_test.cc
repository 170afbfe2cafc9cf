// A node whose daemon was told to end is not one that was lost.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

class FarewellTest : public CoreTest {
 protected:
  const NodeRecord& node() { return *state_->registry.find("n"); }
  void let_lease_end() {
    clock_.advance_ns(settings_.lease_ms * 2'000'000);
    membership_->expire();
  }
};

TEST_F(FarewellTest, WhoHasLeftIsStoppedWhenItsLeaseIsOver) {
  join("n");
  ASSERT_TRUE(membership_->left(tickets_["n"]));
  EXPECT_STREQ(node().life_name(), "up") << "it may still tell something";
  membership_->disconnected(tickets_["n"]);
  let_lease_end();
  EXPECT_STREQ(node().life_name(), "stopped");
}

TEST_F(FarewellTest, WhoIsGoneWithoutAWordIsLost) {
  join("n");
  membership_->disconnected(tickets_["n"]);
  let_lease_end();
  EXPECT_STREQ(node().life_name(), "lost");
}

TEST_F(FarewellTest, ItHoldsUntilItJoinsAgain) {
  join("n");
  ASSERT_TRUE(membership_->left(tickets_["n"]));
  membership_->disconnected(tickets_["n"]);
  join("n", 8);
  EXPECT_STREQ(node().life_name(), "up");
  membership_->disconnected(tickets_["n"]);
  let_lease_end();
  EXPECT_STREQ(node().life_name(), "lost");
}

TEST_F(FarewellTest, OfAnEarlierSessionItIsNone) {
  join("n");
  const auto earlier = tickets_["n"];
  join("n");
  EXPECT_FALSE(membership_->left(earlier));
  let_lease_end();
  EXPECT_STREQ(node().life_name(), "lost");
}

// Its lease runs on, under which they might go on.
TEST_F(FarewellTest, TasksThatAreLeftAllTheSameAreTriedAgain) {
  join("n");
  const auto submitted = submit({spec("a")});
  ASSERT_TRUE(submitted);
  const auto id = submitted->first_task;
  assign(id, "n");
  ASSERT_TRUE(membership_->left(tickets_["n"]));
  membership_->disconnected(tickets_["n"]);
  let_lease_end();
  const auto& left = *state_->tasks.find(id);
  EXPECT_EQ(left.state, TaskState::kQueued);
  EXPECT_THAT(left.reason, HasSubstr("the daemon of node 'n' was stopped"));
}

}  // namespace
}  // namespace tierpilot::testing

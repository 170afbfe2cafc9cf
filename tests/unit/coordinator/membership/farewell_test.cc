// A node whose daemon was told to end is not one that was lost.
#include <gmock/gmock.h>

#include <algorithm>

#include "coordinator/store/records.h"
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

TEST_F(FarewellTest, WhoIsAwayIsStillKnownAfterARestartOfTheCoordinator) {
  for (const char* name : {"stopped", "lost", "up"}) join(name);
  ASSERT_TRUE(membership_->left(tickets_["stopped"]));
  for (const char* name : {"stopped", "lost"}) membership_->disconnected(tickets_[name]);
  clock_.advance_ns(settings_.lease_ms * 2'000'000);
  join("up");
  membership_->expire();
  flush();
  restart();
  const auto life = [&](const char* name) -> std::string {
    const auto* node = state_->registry.find(name);
    return node ? node->life_name() : "not known";
  };
  EXPECT_EQ(life("stopped"), "expected");
  EXPECT_EQ(life("lost"), "expected");
  EXPECT_EQ(life("up"), "expected");
  join("up");
  clock_.advance_ns(settings_.lease_ms * 2'000'000);
  join("up");
  membership_->expire();
  EXPECT_EQ(life("stopped"), "stopped");
  EXPECT_EQ(life("lost"), "lost");
  EXPECT_EQ(life("up"), "up");
}

TEST_F(FarewellTest, WhoIsLostIsNotedOnceForAnOperator) {
  join("n");
  const auto times = [&] {
    flush();
    const auto events = *records::node_events(store_->reader(), "n", 100);
    return std::ranges::count(events, "lost", &NodeEvent::what);
  };
  membership_->disconnected(tickets_["n"]);
  let_lease_end();
  EXPECT_EQ(times(), 1);
  restart();
  let_lease_end();
  EXPECT_EQ(times(), 1) << "it has not been there since";
  join("n", 8);
  let_lease_end();
  EXPECT_EQ(times(), 2);
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

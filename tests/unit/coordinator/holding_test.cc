// Tasks that the policy keeps back for a full node (policies/scheduling/held_tasks.h), in the
// coordinator.
#include <gmock/gmock.h>

#include "coordinator/core/queue/kept_back.h"
#include "holding_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(HoldingTest, ATaskWaitsForTheNodeThatHasItsDataAndGoesThere) {
  begin();
  const uint64_t id = keep_one_back();
  EXPECT_EQ(task(id).state, TaskState::kQueued);

  EXPECT_TRUE(exit("b", busy_[0], success()));
  decide(id);
  EXPECT_EQ(task(id).node, "b");
  EXPECT_TRUE(state_->held.empty());
}

// Its first try has a number above all that the backup does not know.
TEST_F(HoldingTest, SoDoesOneThatABackupHasBroughtBack) {
  begin();
  state_->restored_up_to = 1'000;
  state_->attempts_above = 100'000'000;
  const uint64_t id = keep_one_back();
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_TRUE(state_->held.waits(id));
  EXPECT_TRUE(exit("b", busy_[0], success()));
  decide(id);
  EXPECT_EQ(task(id).node, "b");
}

TEST_F(HoldingTest, AtTheLatestItGoesElsewhereWhenThatWouldHaveBeenDone) {
  begin();
  const uint64_t id = keep_one_back();
  clock_.advance_ns(60'000'000'000);
  ring();
  decide(id);
  EXPECT_EQ(task(id).node, "a");
}

TEST_F(HoldingTest, WhileItWaitsItSaysForWhatSinceWhenAndUntilWhen) {
  begin();
  const uint64_t id = submit_reader();
  EXPECT_FALSE(kept_back(*state_, task(id)));
  const int64_t asked_ms = clock_.wall_ms();
  decide(id);
  clock_.advance_ns(100'000'000);
  const auto kept = kept_back(*state_, task(id));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->node, "b");
  EXPECT_EQ(kept->since_ms, asked_ms);
  EXPECT_GE(kept->until_ms, asked_ms + 1000) << "a second to fetch the data";
  EXPECT_LE(kept->until_ms, asked_ms + 1100) << "then to make room for it, and to run";
  EXPECT_THAT(kept->reason, HasSubstr("'b', which is full and has its data"));

  state_->held.wake(id);
  EXPECT_FALSE(kept_back(*state_, task(id))) << "it waits for nobody but the policy";
}

TEST_F(HoldingTest, OnceItIsPlacedTheDecisionTellsThatItWaitedAndThePolicyIsCounted) {
  begin();
  const uint64_t reaches = keep_one_back();
  clock_.advance_ns(300'000'000);
  EXPECT_TRUE(exit("b", busy_[0], success()));
  decide(reaches);
  const auto reached = decisions_of(reaches);
  ASSERT_THAT(reached, SizeIs(1));
  EXPECT_EQ(reached.front().kept_back_for, "b");
  EXPECT_EQ(reached.front().kept_back_ms, 300);

  const uint64_t misses = keep_one_back();
  clock_.advance_ns(60'000'000'000);
  ring();
  decide(misses);
  ASSERT_EQ(task(misses).node, "a");
  EXPECT_EQ(decisions_of(misses).front().kept_back_for, "b");
  const auto& score = state_->scores.of("dqn");
  EXPECT_EQ(score.kept_back_ns.count(), 2u);
  EXPECT_EQ(score.kept_back_reached, 1u);

  const uint64_t other = submit({spec()})->first_task;
  decide(other);
  EXPECT_EQ(decisions_of(other).front().kept_back_for, "");
}

TEST_F(HoldingTest, OthersPassIt) {
  begin();
  const uint64_t held = keep_one_back();
  const uint64_t other = submit({spec()})->first_task;
  decide(other);
  EXPECT_EQ(task(other).node, "a");
  EXPECT_TRUE(state_->held.waits(held));
}

TEST_F(HoldingTest, ACancelledOneIsForgotten) {
  begin();
  const uint64_t id = keep_one_back();
  lifecycle_->cancel(id, nullptr);
  flush();
  EXPECT_TRUE(state_->held.empty());
  ring();
}

TEST_F(HoldingTest, AnotherPolicyPlacesItAtOnce) {
  begin();
  const uint64_t id = keep_one_back();
  ASSERT_TRUE(host_->use("least-loaded"));
  decide(id);
  EXPECT_EQ(task(id).node, "a");
}

TEST_F(HoldingTest, APolicyInShadowHoldsNothing) {
  begin(PolicyMode::kShadow);
  const uint64_t id = submit_reader();
  decide(id);
  EXPECT_EQ(task(id).node, "a");
}

TEST_F(HoldingTest, AnAdviserHoldsNothingThatTheHeuristicWouldNot) {
  begin(PolicyMode::kAdvise);
  const uint64_t id = submit_reader();
  decide(id);
  EXPECT_EQ(task(id).node, "a");
}

TEST_F(HoldingTest, WithoutItTheHeuristicHolds) {
  begin(PolicyMode::kShadow);
  has_room_soon();
  EXPECT_NE(decision_after_waiting().fallback, "");
}

TEST_F(HoldingTest, AnAdviserMayHoldWhatTheHeuristicWouldToo) {
  begin(PolicyMode::kAdvise);
  has_room_soon();
  EXPECT_EQ(decision_after_waiting().fallback, "");
}

TEST_F(HoldingTest, WhoeverDecidesNextIsAskedAboutIt) {
  begin();
  const uint64_t id = keep_one_back();
  ASSERT_TRUE(oversight_->set_mode("dqn", PolicyMode::kShadow));
  decide(id);
  EXPECT_EQ(task(id).node, "a");
}

TEST_F(HoldingTest, AnOperatorMayForbidIt) {
  settings_.hold_tasks = false;
  restart();
  begin();
  const uint64_t id = submit_reader();
  decide(id);
  EXPECT_EQ(task(id).node, "a");
}

}  // namespace
}  // namespace tierpilot::testing

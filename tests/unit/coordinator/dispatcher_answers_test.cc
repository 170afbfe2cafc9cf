// What may happen while a policy thinks, and while its decision is on its way to the disk.
#include "coordinator/core/dispatch/dispatcher.h"

#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "dispatcher_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(DispatcherTest, TheNodeHearsOfATaskWhenTheDecisionIsOnDisk) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id));
  EXPECT_THAT(node->started, IsEmpty());
  flush();
  EXPECT_THAT(node->started, ElementsAre(AttemptId{id, 1}));
  EXPECT_EQ(stored(id)->state, TaskState::kAssigned);
  const auto decisions = records::decisions(store_->reader(), id);
  ASSERT_TRUE(decisions) << decisions.error().message;
  ASSERT_THAT(*decisions, SizeIs(1));
  EXPECT_EQ(decisions->front().policy, "dqn");
  EXPECT_EQ(decisions->front().fallback, "");
}

TEST_F(DispatcherTest, ACancelWhileTheDecisionIsBeingWrittenReachesTheNodeAfterTheStart) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id));
  lifecycle_->cancel(id, nullptr);
  const size_t before_the_start = node->cancelled.size();
  ASSERT_THAT(node->started, IsEmpty());
  flush();
  EXPECT_THAT(node->started, ElementsAre(AttemptId{id, 1}));
  ASSERT_GT(node->cancelled.size(), before_the_start);
  EXPECT_EQ(node->cancelled.back().first, (AttemptId{id, 1}));
}

TEST_F(DispatcherTest, ATaskCancelledWhileThePolicyThinksIsNotPlaced) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  lifecycle_->cancel(id, nullptr);
  let_the_policy_answer();
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kCancelled);
  EXPECT_THAT(node->started, IsEmpty());
  EXPECT_EQ(state_->registry.find("n")->assigned_units, 0u);
}

TEST_F(DispatcherTest, PastItsDeadlineAHeuristicDecidesOnceAndTheRecordSaysSo) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  ASSERT_THAT(deadlines_, SizeIs(1));
  pass_deadlines();
  EXPECT_EQ(state_of(id), TaskState::kAssigned);
  let_the_policy_answer();
  flush();
  EXPECT_THAT(node->started, ElementsAre(AttemptId{id, 1}));
  const auto decisions = records::decisions(store_->reader(), id);
  ASSERT_TRUE(decisions);
  ASSERT_THAT(*decisions, SizeIs(1));
  EXPECT_THAT(decisions->front().fallback, HasSubstr("no decision within"));
}

TEST_F(DispatcherTest, ADeadlineAfterTheAnswerChangesNothing) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id));
  pass_deadlines();
  flush();
  EXPECT_THAT(node->started, ElementsAre(AttemptId{id, 1}));
}

TEST_F(DispatcherTest, ATimerThatWasSetForAnEarlierDecisionLetsTheNextOneItsTime) {
  auto node = join("n");
  const auto first = submit({spec("a")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(first));
  clock_.advance_ns(settings_.decision_deadline_us * 900);
  const auto second = submit({spec("b")})->first_task;
  dispatcher_->pump();
  ASSERT_THAT(deadlines_, SizeIs(1));
  clock_.advance_ns(settings_.decision_deadline_us * 100);
  ring();
  EXPECT_EQ(state_of(second), TaskState::kQueued);
  ASSERT_THAT(deadlines_, SizeIs(1)) << "set again for what is left";
  EXPECT_NEAR(wait_us_, 0.9 * static_cast<double>(settings_.decision_deadline_us), 1);
  pass_deadlines();
  EXPECT_EQ(state_of(second), TaskState::kAssigned);
}

// The action that was taken is the one that is learned from, and only that.
TEST_F(DispatcherTest, AnAnswerThatWaitsInTheQueueWhenItsDeadlinePassesIsNotLearnedFrom) {
  auto a = join("a");
  auto b = join("b");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  pass_deadlines();
  let_the_policy_answer();
  flush();
  EXPECT_EQ(a->started.size() + b->started.size(), 1u);
  dispatcher_->credits().ended({id, 1}, true);
  EXPECT_TRUE(host_->save().error().code == ErrorCode::kUnavailable) << "all facts were handled";
  EXPECT_EQ(host_->learner("dqn").decisions, 1u);
}

TEST_F(DispatcherTest, ANodeThatWentWhileThePolicyThoughtGetsNothing) {
  auto node = join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  membership_->disconnected(tickets_["n"]);
  let_the_policy_answer();
  flush();
  EXPECT_EQ(state_of(id), TaskState::kQueued);
  EXPECT_THAT(node->started, IsEmpty());
}

TEST_F(DispatcherTest, AnAnswerThatNobodyWaitsForAnyMoreIsNotTakenForTheNextOne) {
  join("n");
  const auto id = submit({spec("a")})->first_task;
  dispatcher_->pump();
  membership_->disconnected(tickets_["n"]);
  pass_deadlines();
  ASSERT_EQ(state_of(id), TaskState::kQueued);
  // The first of the nodes now is not the one that was meant, and is no candidate.
  join("a");
  state_->registry.find("a")->assigned_units = 1000;
  join("n");
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id));
  EXPECT_EQ(state_->tasks.find(id)->node, "n");
  flush();
  EXPECT_EQ(records::decisions(store_->reader(), id)->front().fallback, "");
}

TEST_F(DispatcherTest, WhatAnEarlierCoordinatorDecidedIsLearnedFrom) {
  join("n");
  const auto id = submit({spec("a"), spec("b")})->first_task;
  dispatcher_->pump();
  ASSERT_TRUE(run_until_assigned(id + 1));
  flush();
  start_dispatcher();
  clock_.advance_ns(2'000'000'000);
  dispatcher_->credits().ended({id, 1}, true);
  (void)host_->save();
  EXPECT_EQ(host_->learner("dqn").experiences, 1u);
  EXPECT_EQ(host_->learner("dqn").pending, 1u) << "the second one";
}

}  // namespace
}  // namespace tierpilot::testing

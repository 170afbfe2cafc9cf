// Best-effort tasks that give their shares up: with grace for a checkpoint, and queued again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

TEST_F(ShareKeeperTest, WhoIsPreemptedIsQueuedAgainWithoutACountedTry) {
  keeper_.reset();
  make_keeper("share-published");
  const auto best_effort = accept(shared("b", 800));
  pump();
  auto task_a = shared("a", 700);
  task_a.share.latency_sensitive = true;
  const auto sensitive = accept(task_a);
  pump();
  EXPECT_EQ(task(sensitive).state, TaskState::kQueued);
  ASSERT_EQ(node_->cancelled.size(), 1u)
      << "it takes no checkpoints, so that nothing is waited for";
  EXPECT_EQ(node_->cancelled[0].first, (AttemptId{best_effort, 1}));
  TaskExit ended;
  ended.how = TaskEnd::kCancelled;
  ended.reason = node_->cancelled[0].second;
  EXPECT_TRUE(exit("n1", {best_effort, 1}, ended));
  EXPECT_EQ(task(best_effort).state, TaskState::kQueued);
  EXPECT_EQ(task(best_effort).forgiven, 1u);
  EXPECT_EQ(task(best_effort).share->preemptions, 1u);
  pump();
  EXPECT_EQ(task(sensitive).state, TaskState::kRunning);
  EXPECT_EQ(task(best_effort).state, TaskState::kQueued);
  EXPECT_TRUE(exit("n1", {sensitive, 1}, success()));
  pump();
  EXPECT_EQ(task(best_effort).state, TaskState::kRunning);
  EXPECT_EQ(task(best_effort).attempt, 2u);
}

// It would save when asked to, and has not yet.
TEST_F(ShareKeeperTest, WhoTakesCheckpointsHasItsGraceForTheFirst) {
  keeper_.reset();
  make_keeper("share-published");
  const auto best_effort = accept(shared("b", 800));
  pump();
  JobPoint says;
  says.attempt = 1;
  says.cpu_ns = 1;
  says.takes_checkpoints = true;
  keeper_->reported(task(best_effort), says);
  auto task_a = shared("a", 700);
  task_a.share.latency_sensitive = true;
  accept(task_a);
  pump();
  const auto grace_s = static_cast<int>(settings_.preemption_grace_ms / 1000);
  pass(grace_s - 2);
  EXPECT_TRUE(node_->cancelled.empty());
  pass(4);
  EXPECT_EQ(node_->cancelled.size(), 1u);
}

TEST_F(ShareKeeperTest, AfterARestartNobodyIsEndedBeforeItsNodeHasToldWhetherItSaves) {
  const auto id = accept(shared("a", 800));
  pump();
  flush();
  keeper_.reset();
  checkpoints_.reset();
  restart();
  make_keeper("share-published");
  keeper_->begin();
  node_ = join_sharing("n1", 1, {{id, 1}});
  auto task_a = shared("now", 700);
  task_a.share.latency_sensitive = true;
  accept(task_a);
  pump();
  EXPECT_TRUE(node_->cancelled.empty());
  JobPoint says;  // that it takes none
  says.attempt = 1;
  says.cpu_ns = 1;
  keeper_->reported(task(id), says);
  pass(1);
  EXPECT_EQ(node_->cancelled.size(), 1u);
}

TEST_F(ShareKeeperTest, AUnitIsKeptForNobodyThatWasCancelled) {
  keeper_.reset();
  make_keeper("share-published");
  const auto best_effort = accept(shared("b", 800));
  pump();
  auto task_a = shared("a", 700);
  task_a.share.latency_sensitive = true;
  const auto sensitive = accept(task_a);
  pump();
  lifecycle_->cancel(sensitive, nullptr);
  TaskExit ended;
  ended.how = TaskEnd::kCancelled;
  EXPECT_TRUE(exit("n1", {best_effort, 1}, ended));
  pump();
  EXPECT_EQ(task(best_effort).state, TaskState::kRunning);
}

TEST_F(ShareKeeperTest, WhoIsPreemptedWhileItsNodeIsAwayIsToldWhenItIsBack) {
  keeper_.reset();
  make_keeper("share-published");
  const auto best_effort = accept(shared("b", 800));
  pump();
  auto task_a = shared("a", 700);
  task_a.share.latency_sensitive = true;
  accept(task_a);
  pump();
  ASSERT_EQ(node_->cancelled.size(), 1u);
  // What was sent over the last connection may never have come.
  const auto again = join_sharing("n1", 1, {{best_effort, 1}});
  pass(1);
  ASSERT_EQ(again->cancelled.size(), 1u);
  EXPECT_EQ(again->cancelled[0].first, (AttemptId{best_effort, 1}));
}

}  // namespace
}  // namespace tierpilot::testing

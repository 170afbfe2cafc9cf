// Best-effort tasks that give their shares up: with grace for a checkpoint, and queued again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/outcomes/task_end.h"
#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

TEST_F(ShareKeeperTest, WhoIsPreemptedIsQueuedAgainWithoutACountedTry) {
  keeper_.reset();
  make_keeper("share-published");
  const auto best_effort = accept(shared("b", 800));
  pump();
  const auto sensitive = accept(ShareKeeperTest::sensitive("a", 700));
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

TEST_F(ShareKeeperTest, APreemptionIsCountedAlsoAfterARestart) {
  keeper_.reset();
  make_keeper("share-published");
  const auto best_effort = accept(shared("b", 800));
  pump();
  const auto sensitive = accept(ShareKeeperTest::sensitive("a", 700));
  pump();
  flush();
  EXPECT_EQ(stored(best_effort)->share->preemptions, 1u);
  restart_coordinator();
  EXPECT_EQ(task(best_effort).share->preemptions, 1u);
  EXPECT_EQ(task(sensitive).state, TaskState::kQueued);
}

// Nobody needs it any more.
TEST_F(ShareKeeperTest, APreemptionThatIsTakenBackIsNotCounted) {
  keeper_.reset();
  make_keeper("share-published");
  const auto best_effort = accept(shared("b", 800));
  pump();
  say_takes_checkpoints(best_effort);
  const auto sensitive = accept(ShareKeeperTest::sensitive("a", 700));
  pump();
  flush();
  EXPECT_EQ(stored(best_effort)->share->preemptions, 1u);
  EXPECT_TRUE(cancel(sensitive));
  pass(1);
  flush();
  EXPECT_EQ(stored(best_effort)->share->preemptions, 0u);
}

// It would save when asked to, and has not yet.
TEST_F(ShareKeeperTest, WhoTakesCheckpointsHasItsGraceForTheFirst) {
  keeper_.reset();
  make_keeper("share-published");
  const auto best_effort = accept(shared("b", 800));
  pump();
  say_takes_checkpoints(best_effort);
  accept(ShareKeeperTest::sensitive("a", 700));
  pump();
  const auto grace_s = static_cast<int>(settings_.preemption_grace_ms / 1000);
  pass(grace_s - 2);
  EXPECT_TRUE(node_->cancelled.empty());
  pass(4);
  EXPECT_EQ(node_->cancelled.size(), 1u);
}

// What it was asked over the last connection it may never have heard.
TEST_F(ShareKeeperTest, WhoseNodeIsBackIsAskedForACheckpointAgainAndHasItsGraceFromThen) {
  keeper_.reset();
  make_keeper("share-published");
  const auto best_effort = accept(shared("b", 800));
  pump();
  say_takes_checkpoints(best_effort);
  accept(ShareKeeperTest::sensitive("a", 700));
  pump();
  const auto grace_s = static_cast<int>(settings_.preemption_grace_ms / 1000);
  pass(grace_s - 2);
  const auto again = join_sharing("n1", 1, {{best_effort, 1}});
  pass(4);
  EXPECT_TRUE(again->cancelled.empty());
  EXPECT_EQ(std::ranges::count_if(again->told,
                                  [](const auto& told) {
                                    return std::holds_alternative<CheckpointNow>(told.second);
                                  }),
            1);
  pass(grace_s);
  EXPECT_EQ(again->cancelled.size(), 1u);
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
  accept(ShareKeeperTest::sensitive("now", 700));
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
  const auto sensitive = accept(ShareKeeperTest::sensitive("a", 700));
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
  accept(ShareKeeperTest::sensitive("a", 700));
  pump();
  ASSERT_EQ(node_->cancelled.size(), 1u);
  // What was sent over the last connection may never have come.
  const auto again = join_sharing("n1", 1, {{best_effort, 1}});
  pass(1);
  ASSERT_EQ(again->cancelled.size(), 1u);
  EXPECT_EQ(again->cancelled[0].first, (AttemptId{best_effort, 1}));
}

// Best-effort tasks fill a unit, and one that is latency-sensitive comes.
class SharePreemptionTest : public ShareKeeperTest {
 protected:
  int grace_s() const { return static_cast<int>(settings_.preemption_grace_ms / 1000); }
};

TEST_F(SharePreemptionTest, WhoseStartIsStillBeingWrittenIsToldOnceItRuns) {
  const auto best_effort = accept(shared("b", 1000));
  keeper_->pump();
  flush();
  ASSERT_EQ(task(best_effort).state, TaskState::kAssigned);
  accept(sensitive("a", 1000));
  keeper_->pump();
  // What its node hears before the start means nothing to it.
  const auto before = node_->cancelled.size();
  lifecycle_->started("n1", {best_effort, 1});
  pass(1);
  ASSERT_GT(node_->cancelled.size(), before);
  EXPECT_EQ(node_->cancelled.back().first, (AttemptId{best_effort, 1}));
  const auto told = node_->cancelled.size();
  pass(2);
  EXPECT_EQ(node_->cancelled.size(), told) << "once is enough while it runs";
}

TEST_F(SharePreemptionTest, OneTaskEndsJobsOfOneUnitOnly) {
  const auto other_node = join_sharing("n2", 1);
  const auto first = accept(shared("first", 1000));
  pump();
  pass(10);
  const auto second = accept(shared("second", 500)), third = accept(shared("third", 500));
  pump();
  ASSERT_EQ(task(second).node, task(third).node);
  for (const auto id : {first, second, third}) say_takes_checkpoints(id);
  pass(10);
  const auto urgent = accept(sensitive("a", 1000));
  pump();
  ASSERT_EQ(task(first).share->preemptions, 1U) << "the fewest are ended";
  // Now less would be lost on the other unit.
  EXPECT_TRUE(exit(task(third).node, {third, 1}, success()));
  pump();
  pass(1);
  EXPECT_EQ(task(second).share->preemptions, 0U);
  EXPECT_EQ(task(urgent).state, TaskState::kQueued);
  EXPECT_EQ(keeper_->preemptions(), 1U);
}

TEST_F(SharePreemptionTest, WhoFindsAPlaceElsewhereEndsNobody) {
  const auto best_effort = accept(shared("b", 1000));
  pump();
  say_takes_checkpoints(best_effort);
  const auto urgent = accept(sensitive("a", 1000));
  pump();
  ASSERT_EQ(task(best_effort).share->preemptions, 1U);
  const auto other_node = join_sharing("n2", 1);
  pump();
  EXPECT_EQ(task(urgent).node, "n2");
  pass(grace_s() + 4);
  EXPECT_TRUE(node_->cancelled.empty());
  EXPECT_EQ(task(best_effort).share->preemptions, 0U);
  EXPECT_EQ(keeper_->preemptions(), 0U);
}

TEST_F(SharePreemptionTest, WhoIsCancelledEndsNobody) {
  const auto best_effort = accept(shared("b", 1000));
  pump();
  say_takes_checkpoints(best_effort);
  const auto urgent = accept(sensitive("a", 1000));
  pump();
  lifecycle_->cancel(urgent, nullptr);
  pass(grace_s() + 4);
  EXPECT_TRUE(node_->cancelled.empty());
  EXPECT_EQ(task(best_effort).state, TaskState::kRunning);
}

TEST_F(SharePreemptionTest, AUnitThatWillNotDoIsKeptNoLonger) {
  const auto best_effort = accept(shared("b", 1000));
  pump();
  say_takes_checkpoints(best_effort);
  auto bound = sensitive("a", 1000);
  bound.node = "n1";
  const auto urgent = accept(bound);
  pump();
  ASSERT_EQ(task(best_effort).share->preemptions, 1U);
  state_->registry.set_order("n1", {NodeOrder::Kind::kCordoned});
  pass(grace_s() + 4);
  EXPECT_TRUE(node_->cancelled.empty()) << "nobody ends for one that could not start there";
  EXPECT_EQ(task(urgent).state, TaskState::kQueued);
}

// What it left is not free for it again.
TEST_F(SharePreemptionTest, WhoEndsForANeighboursPromiseMakesRoomForThatOne) {
  const auto best_effort = accept(shared("b", 500));
  pump();
  const auto urgent = accept(promised("a", 450, 100, 210));
  pump();
  ASSERT_EQ(task(urgent).state, TaskState::kRunning);
  node_->free_milli = 500;  // while the other is there
  for (int s = 1; s <= 60 && node_->cancelled.empty(); ++s) {
    JobPoint hungry;  // it uses all that it has, and waits for more
    hungry.attempt = 1;
    hungry.cpu_ns = static_cast<uint64_t>(s) * 400'000'000;
    hungry.waited_ns = static_cast<uint64_t>(s) * 600'000'000;
    pass(1);
    keeper_->reported(task(urgent), hungry);
  }
  ASSERT_EQ(node_->cancelled.size(), 1U);
  node_->free_milli = 1000;
  TaskExit ended;
  ended.how = TaskEnd::kCancelled;
  ended.reason = node_->cancelled[0].second;
  EXPECT_TRUE(exit("n1", {best_effort, 1}, ended));
  pump();
  EXPECT_EQ(task(best_effort).state, TaskState::kQueued);
  EXPECT_GT(milli(urgent), 900U);
}

TEST_F(SharePreemptionTest, ToGiveAShareUpIsNoLossThatIsForgivenOnlySoOften) {
  Task task;
  task.attempt = 40;
  task.forgiven = 17;
  EXPECT_FALSE(may_forgive(task));
  task.share = UnitShare{.preemptions = 17};
  EXPECT_TRUE(may_forgive(task));
  task.forgiven = 17 + 16;
  EXPECT_FALSE(may_forgive(task));
}

}  // namespace
}  // namespace tierpilot::testing

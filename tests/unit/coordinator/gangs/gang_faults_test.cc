// What befalls a gang through its nodes, its coordinator or the disk is no failure of its own.
#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "gang_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GangFaults : public Gangs {
 protected:
  void break_store(const char* sql) {
    store_->write([sql](Db& db) { return db.execute(sql); }, nullptr);
    flush();
  }
  // Of nodes that keep in touch.
  void pass_in_touch(int64_t ms) {
    pass(ms);
    for (const auto& [name, ticket] : tickets_) EXPECT_TRUE(membership_->renew(ticket));
    membership_->expire();
  }
  static TaskExit ended_by(TaskEnd how, bool node_fault) {
    TaskExit exit;
    exit.how = how;
    exit.reason = "the node is stopping";
    exit.node_fault = node_fault;
    return exit;
  }
  // All ranks but the first, which ends so; then the coordinator starts anew.
  void end_first_and_restart(uint64_t id, TaskExit how) {
    join("a");
    place();
    start_all(id);
    end(id, 0, std::move(how));
    const auto other = attempt(id, 1);
    again();
    join("a", 7, {other});
    end_cancelled(id);
  }
};

TEST_F(GangFaults, ARankThatItsNodeEndedIsNoFailureAfterARestartOfTheCoordinator) {
  const auto id = submit_gang(2);
  end_first_and_restart(id, ended_by(TaskEnd::kCancelled, false));
  ASSERT_TRUE(state_->tasks.find(id)) << stored(id)->reason;
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_EQ(task(id).forgiven, 1u);
  EXPECT_EQ(task(id).restarts, 0u);
}

// Its peers lose it and fail, and their ends may be told first.
TEST_F(GangFaults, NorIsWhatItsPeersMakeOfItsEnd) {
  for (const bool peer_first : {false, true}) {
    join("a");
    const auto id = submit_gang(2);
    place();
    start_all(id);
    TaskExit lost_its_peer;
    lost_its_peer.code = 1;
    const auto drained = ended_by(TaskEnd::kCancelled, false);
    end(id, 0, peer_first ? lost_its_peer : drained);
    end(id, 1, peer_first ? drained : lost_its_peer);
    flush();
    ASSERT_TRUE(state_->tasks.find(id)) << stored(id)->reason;
    EXPECT_EQ(task(id).state, TaskState::kQueued) << task(id).reason;
    EXPECT_EQ(task(id).restarts, 0u);
    EXPECT_THAT(task(id).reason, HasSubstr("the node is stopping"));
    lifecycle_->cancel(id, [](Status) {});
    flush();
  }
}

TEST_F(GangFaults, ItsOwnFailureIsOneThoughTheCoordinatorRestartsWhileItEnds) {
  join("a");
  const auto id = submit_gang(2, 1);
  place();
  start_all(id);
  end(id, 0, killed(SIGSEGV));
  const auto other = attempt(id, 1);
  again();
  join("a", 7, {other});
  auto told_before = ended_by(TaskEnd::kCancelled, false);
  told_before.reason = "rank 0 of its gang ended: ended by signal 11";
  EXPECT_TRUE(exit("a", other, told_before));
  flush();
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_EQ(task(id).restarts, 1u) << task(id).reason;
}

TEST_F(GangFaults, NorOneThatCouldNotBeStarted) {
  const auto id = submit_gang(2);
  end_first_and_restart(id, ended_by(TaskEnd::kCouldNotStart, true));
  ASSERT_TRUE(state_->tasks.find(id)) << stored(id)->reason;
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_EQ(task(id).forgiven, 1u);
}

// It was to end then, and would run for as long again.
TEST_F(GangFaults, OnePastItsTimeLimitIsNotTriedAgain) {
  join("a");
  const auto id = submit_gang(2, 3);
  place();
  start_all(id);
  auto timed_out = ended_by(TaskEnd::kTimedOut, false);
  timed_out.reason = "ran longer than its limit of 3000 ms";
  end(id, 1, timed_out);
  end_cancelled(id);
  EXPECT_EQ(stored(id)->state, TaskState::kFailed);
  EXPECT_EQ(stored(id)->restarts, 0u);
  EXPECT_EQ(stored(id)->reason, "rank 1 on node 'a': " + timed_out.reason);
}

TEST_F(GangFaults, AFullDiskOfTheCoordinatorIsNoTry) {
  join("a");
  const auto id = submit_gang(2);
  break_store(
      "CREATE TRIGGER full BEFORE INSERT ON decisions_by_id "
      "BEGIN SELECT RAISE(FAIL, 'full'); END");
  // More often than a task is forgiven faults of nodes.
  for (uint32_t i = 0; i < settings_.max_attempts + 20; ++i) place();
  break_store("DROP TRIGGER full");
  ASSERT_TRUE(state_->tasks.find(id)) << stored(id)->reason;
  place();
  start_all(id);
  EXPECT_EQ(task(id).state, TaskState::kRunning);
  EXPECT_EQ(task(id).attempt, 1u);
  EXPECT_EQ(task(id).forgiven, 0u);
  EXPECT_THAT(state_->registry.find("a")->held, SizeIs(2));
}

TEST_F(GangFaults, ANodeThatCouldNotStartARankDoesNotGetTheGangAgainAtOnce) {
  auto a = join("a"), b = join("b");
  b->refusal = Error{ErrorCode::kExhausted, "no room"};
  const auto id = submit_gang(4);
  place();
  end_cancelled(id);
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  const auto tries = task(id).attempt;
  b->refusal.reset();
  for (int i = 0; i < 3; ++i) place();
  EXPECT_EQ(task(id).attempt, tries);
  pass_in_touch(1'100);
  place();
  EXPECT_EQ(task(id).attempt, tries + 1);
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
}

TEST_F(GangFaults, ALateStartIsNoticedAlsoAfterARestartOfTheCoordinator) {
  join("a");
  auto late = gang(2);
  late.gang.start_within_ms = 5'000;
  const auto id = submit({late})->first_task;
  place();
  lifecycle_->started("a", attempt(id, 0), 5, {0});
  flush();
  const auto first = attempt(id, 0), second = attempt(id, 1);
  again();
  auto a = join("a", 7, {first, second});
  pass(5'001);
  EXPECT_THAT(a->cancelled, SizeIs(2));
  EXPECT_THAT(task(id).reason, HasSubstr("rank 1 did not start"));
}

// A node tells an end until it is acknowledged, and forgets it then.
TEST_F(GangFaults, TheEndOfARankThatIsNotOnDiskIsNotAcknowledgedWhenItIsToldAgain) {
  join("a");
  const auto id = submit_gang(2);
  place();
  start_all(id);
  const auto rank = attempt(id, 0);
  break_store("CREATE TRIGGER full BEFORE UPDATE ON tasks BEGIN SELECT RAISE(FAIL, 'full'); END");
  EXPECT_FALSE(exit("a", rank, success()));
  EXPECT_FALSE(exit("a", rank, success()));
  break_store("DROP TRIGGER full");
  lifecycle_->writes().retry();
  flush();
  EXPECT_TRUE(exit("a", rank, success()));
  EXPECT_TRUE(stored(rank.task)->exit);
}

// The write of the first end fails, and that of the second start does not.
TEST_F(GangFaults, AnAttemptThatWasStartedMeanwhileIsNotReleasedWithTheOneBefore) {
  auto a = join("a");
  auto b = join("b");
  const auto first = assign(submit({spec()})->first_task, "a");
  break_store("CREATE TRIGGER full BEFORE UPDATE ON tasks BEGIN SELECT RAISE(FAIL, 'full'); END");
  EXPECT_FALSE(exit("a", first, ended_by(TaskEnd::kCouldNotStart, true)));
  break_store("DROP TRIGGER full");
  const auto second = assign(first.task, "b");
  EXPECT_EQ(second.attempt, first.attempt + 1);
  lifecycle_->writes().retry();
  flush();
  EXPECT_THAT(b->released, ::testing::IsEmpty()) << "it runs";
  EXPECT_THAT(a->released, ::testing::ElementsAre(first));
}

TEST_F(GangFaults, AllAttemptsThatEndedBeforeTheDiskWasReadyAreReleased) {
  const char* full =
      "CREATE TRIGGER full BEFORE UPDATE ON tasks BEGIN SELECT RAISE(FAIL, 'full'); END";
  auto a = join("a");
  auto b = join("b");
  const auto first = assign(submit({spec()})->first_task, "a");
  break_store(full);
  EXPECT_FALSE(exit("a", first, ended_by(TaskEnd::kCouldNotStart, true)));
  break_store("DROP TRIGGER full");
  const auto second = assign(first.task, "b");
  break_store(full);
  EXPECT_FALSE(exit("b", second, ended_by(TaskEnd::kCouldNotStart, true)));
  break_store("DROP TRIGGER full");
  lifecycle_->writes().retry();
  flush();
  EXPECT_THAT(a->released, ::testing::ElementsAre(first)) << "else its node keeps it for ever";
  EXPECT_THAT(b->released, ::testing::ElementsAre(second));
}

TEST_F(GangFaults, NorThatOfATaskThatIsTriedAgain) {
  join("a");
  const auto attempt = assign(submit({spec()})->first_task, "a");
  break_store("CREATE TRIGGER full BEFORE UPDATE ON tasks BEGIN SELECT RAISE(FAIL, 'full'); END");
  EXPECT_FALSE(exit("a", attempt, ended_by(TaskEnd::kCouldNotStart, true)));
  EXPECT_FALSE(exit("a", attempt, ended_by(TaskEnd::kCouldNotStart, true)));
  break_store("DROP TRIGGER full");
  lifecycle_->writes().retry();
  flush();
  EXPECT_TRUE(exit("a", attempt, ended_by(TaskEnd::kCouldNotStart, true)));
  EXPECT_EQ(stored(attempt.task)->forgiven, 1u);
}

TEST_F(GangFaults, NothingIsRememberedOfAGangThatIsGone) {
  join("a");
  for (int i = 0; i < 3; ++i) {
    const auto id = submit_gang(1, 5);
    place();
    start_all(id);
    end(id, 0, killed(9));
    lifecycle_->cancel(id, nullptr);
    flush();
    EXPECT_EQ(stored(id)->state, TaskState::kCancelled);
    pass_in_touch(60'000);
  }
  EXPECT_LE(gangs_->blames(), 1u);
}

}  // namespace
}  // namespace tierpilot::testing

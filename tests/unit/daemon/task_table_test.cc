#include "task_table_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tierpilot::agent {
namespace {

TEST_F(TaskTableTest, OnlyARunningAttemptIsPaused) {
  EXPECT_EQ(table.pause(kFirst, true).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(table.start(work(kFirst)));
  ASSERT_TRUE(table.pause(kFirst, true));
  ASSERT_TRUE(table.pause(kFirst, false));
  EXPECT_EQ(runner.pauses,
            (std::vector<std::pair<AttemptId, bool>>{{kFirst, true}, {kFirst, false}}));
  table.exited(kFirst, exit_code(0));
  EXPECT_EQ(table.pause(kFirst, true).error().code, ErrorCode::kNotFound);
}

TEST_F(TaskTableTest, FullLife) {
  ASSERT_TRUE(table.start(work(kFirst, 1, {"d"})));
  EXPECT_TRUE(runner.launched.empty());
  clock.advance_ns(5000);
  Served data;
  data.items.push_back({.name = "d", .version = 1, .path = "/fast/d"});
  data.promoted_bytes = 100;
  pool.served(kFirst, data);

  const auto served = events<ServedEvent>();
  ASSERT_EQ(served.size(), 1u);
  EXPECT_EQ(served[0].data.latency_ns, 5000u);
  EXPECT_EQ(served[0].data.reference_ns, 200u);
  EXPECT_EQ(served[0].data.evict_gb_per_s.value(), 2.0);
  EXPECT_EQ(runner.launched, std::vector{kFirst});
  EXPECT_EQ(runner.paths.at(0).path, "/fast/d");

  table.started(kFirst, 77);
  EXPECT_EQ(events<StartedEvent>().at(0).pid, 77);
  pool.commit = std::vector<ReplicaChange>{{"d", 2, 100, true, false, false}};
  table.exited(kFirst, exit_code(0));
  EXPECT_EQ(pool.finished, (std::vector<std::pair<AttemptId, bool>>{{kFirst, true}}));
  EXPECT_EQ(events<ExitedEvent>().at(0).exit.written.at(0).version, 2u);
  EXPECT_TRUE(table.attempts().idle());
  EXPECT_EQ(table.attempts().live(), std::vector{kFirst}) << "until the exit is acknowledged";
  table.exit_acknowledged(kFirst);
  EXPECT_TRUE(table.attempts().live().empty());
}

TEST_F(TaskTableTest, WhatRunsIsReportedAgainAndNothingElse) {
  const AttemptId waiting{kFirst.task + 10, 1}, ended{kFirst.task + 11, 1};
  ASSERT_TRUE(table.start(work(kFirst)));
  ASSERT_TRUE(table.start(work(ended)));
  ASSERT_TRUE(table.start(work(waiting, 1, {"d"})));
  table.registered();
  EXPECT_TRUE(events<StartedEvent>().empty()) << "launched, but not started yet";
  table.started(kFirst, 77);
  table.started(ended, 78);
  table.exited(ended, exit_code(0));
  reported.clear();
  table.registered();
  const auto repeated = events<StartedEvent>();
  ASSERT_EQ(repeated.size(), 1u);
  EXPECT_EQ(repeated[0].attempt, kFirst);
  EXPECT_EQ(repeated[0].pid, 77);
}

// Its release may have been on its way when the connection died.
TEST_F(TaskTableTest, RepeatedStartDoesNothing) {
  ASSERT_TRUE(table.start(work(kFirst)));
  ASSERT_TRUE(table.start(work(kFirst)));
  table.exited(kFirst, exit_code(0));
  table.exit_acknowledged(kFirst);
  ASSERT_TRUE(table.start(work(kFirst)));
  EXPECT_EQ(runner.launched.size(), 1u);
}

TEST_F(TaskTableTest, StagingOverlapsWithRunning) {
  ASSERT_TRUE(table.start(work(kFirst, 2)));
  ASSERT_TRUE(table.start(work(kSecond, 1, {"d"})));
  EXPECT_TRUE(pool.serving.contains(kSecond));
  pool.served(kSecond, Served{});
  EXPECT_EQ(events<ServedEvent>().back().data.running_units, 2u);
  EXPECT_EQ(runner.launched, std::vector{kFirst});
  table.exited(kFirst, exit_code(0));
  EXPECT_EQ(runner.launched, (std::vector{kFirst, kSecond}));
}

TEST_F(TaskTableTest, FirstComeFirstServedWithoutBackfill) {
  ASSERT_TRUE(table.start(work(kFirst, 1)));
  ASSERT_TRUE(table.start(work(kSecond, 2)));
  ASSERT_TRUE(table.start(work(kThird, 1)));
  EXPECT_EQ(runner.launched, std::vector{kFirst});
  table.exited(kFirst, exit_code(0));
  EXPECT_EQ(runner.launched, (std::vector{kFirst, kSecond}));
  table.exited(kSecond, exit_code(0));
  EXPECT_EQ(runner.launched, (std::vector{kFirst, kSecond, kThird}));
}

TEST_F(TaskTableTest, OfThoseThatAreReadyTheOneWithTheLeastPlaceRuns) {
  constexpr AttemptId kFourth{4, 1}, kFifth{5, 1};
  const auto at = [](AttemptId id, double place_s) {
    auto assignment = work(id);
    assignment.place_s = place_s;
    return assignment;
  };
  ASSERT_TRUE(table.start(work(kFirst, 2)));
  ASSERT_TRUE(table.start(at(kSecond, 20)));
  ASSERT_TRUE(table.start(at(kThird, 10)));
  ASSERT_TRUE(table.start(at(kFourth, 10)));
  ASSERT_TRUE(table.start(at(kFifth, 5)));
  table.cancel(kFifth, "not wanted");
  table.exited(kFirst, exit_code(0));
  EXPECT_EQ(runner.launched, (std::vector{kFirst, kThird, kFourth}));
  table.exited(kThird, exit_code(0));
  EXPECT_EQ(runner.launched, (std::vector{kFirst, kThird, kFourth, kSecond}));
}

// A place of the first hour, when nobody knew how fast the cluster is, could else be held against a
// task for a day.
TEST_F(TaskTableTest, PlacesOfTwoReckoningsAreNotCompared) {
  const auto at = [](AttemptId id, int64_t reckoning, double place_s) {
    auto assignment = work(id, 2);
    assignment.reckoning = reckoning;
    assignment.place_s = place_s;
    return assignment;
  };
  constexpr AttemptId kFourth{4, 1};
  ASSERT_TRUE(table.start(at(kFirst, 100, 0)));
  ASSERT_TRUE(table.start(at(kSecond, 200, 1)));
  ASSERT_TRUE(table.start(at(kThird, 100, 1000)));
  ASSERT_TRUE(table.start(at(kFourth, 100, 999)));
  for (int i = 0; i < 3; ++i) table.exited(runner.launched.back(), exit_code(0));
  EXPECT_EQ(runner.launched, (std::vector{kFirst, kFourth, kThird, kSecond}));
}

TEST_F(TaskTableTest, APlaceThatIsNoNumberIsTheFirst) {
  ASSERT_TRUE(table.start(work(kFirst, 2)));
  std::vector<AttemptId> ready;
  for (const double place_s : {1.0, static_cast<double>(NAN), -HUGE_VAL, HUGE_VAL, 0.0}) {
    ready.push_back({10 + ready.size(), 1});
    auto assignment = work(ready.back(), 2);
    assignment.place_s = place_s;
    ASSERT_TRUE(table.start(assignment));
  }
  for (size_t i = 0; i < ready.size(); ++i) table.exited(runner.launched.back(), exit_code(0));
  EXPECT_EQ(runner.launched,
            (std::vector{kFirst, ready[1], ready[2], ready[3], ready[4], ready[0]}));
}

TEST_F(TaskTableTest, UnitsAreCpusOfTheirOwn) {
  ASSERT_TRUE(table.start(work(kFirst)));
  ASSERT_TRUE(table.start(work(kSecond)));
  EXPECT_EQ(runner.cpus[kFirst], std::vector{4});
  EXPECT_EQ(runner.cpus[kSecond], std::vector{5});
  table.exited(kFirst, exit_code(0));
  ASSERT_TRUE(table.start(work(kThird)));
  EXPECT_EQ(runner.cpus[kThird], std::vector{4});
}

TEST_F(TaskTableTest, RefusesTheImpossible) {
  EXPECT_EQ(table.start(work(kFirst, 3)).error().code, ErrorCode::kExhausted)
      << "another node may have as many";
  EXPECT_EQ(table.start(work(kFirst, 0)).error().code, ErrorCode::kInvalid);
  auto empty = work(kFirst);
  empty.argv.clear();
  EXPECT_FALSE(table.start(empty));
  auto large = work(kFirst);
  large.memory_limit_bytes = 1001;
  EXPECT_FALSE(table.start(large));
  auto swapping = work(kFirst);
  swapping.swap_room_bytes = 1;
  EXPECT_EQ(table.start(swapping).error().code, ErrorCode::kExhausted) << "this node offers none";
  EXPECT_TRUE(table.attempts().live().empty());
  EXPECT_TRUE(reported.empty());
}

TEST_F(TaskTableTest, DataFailureEndsTheAttempt) {
  ASSERT_TRUE(table.start(work(kFirst, 1, {"d"})));
  pool.served(kFirst, fail(ErrorCode::kUnreachable, "dataset 'd': nobody answers"));
  const auto exits = events<ExitedEvent>();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].exit.how, TaskEnd::kDataFailed);
  EXPECT_EQ(exits[0].exit.reason, "dataset 'd': nobody answers");
  EXPECT_TRUE(exits[0].exit.node_fault);
}

TEST_F(TaskTableTest, DataThatFitsNowhereIsTheTasksOwnFault) {
  ASSERT_TRUE(table.start(work(kFirst, 1, {"d"})));
  pool.served(kFirst, fail(ErrorCode::kInvalid, "can never fit"));
  ASSERT_EQ(events<ExitedEvent>().size(), 1u);
  EXPECT_FALSE(events<ExitedEvent>()[0].exit.node_fault);
}

// A full disk is the node's; a file that was replaced is the task's.
TEST_F(TaskTableTest, WhatCannotBeKeptOfAWriteIsTheNodesFaultOrTheTasks) {
  for (const auto& [code, nodes] : {std::pair{ErrorCode::kExhausted, true},
                                    {ErrorCode::kIo, true},
                                    {ErrorCode::kConflict, false},
                                    {ErrorCode::kNotFound, false},
                                    {ErrorCode::kInvalid, false}}) {
    pool.commit = tl::unexpected(CommitError({code, "not kept"}));
    const AttemptId attempt{kFirst.task + static_cast<uint64_t>(code), 1};
    auto assignment = work(attempt, 1, {"d"});
    ASSERT_TRUE(table.start(assignment));
    pool.served(attempt, Served{});
    table.exited(attempt, exit_code(0));
    const auto exits = events<ExitedEvent>();
    EXPECT_EQ(exits.back().exit.how, TaskEnd::kDataFailed);
    EXPECT_EQ(exits.back().exit.node_fault, nodes) << error_code_name(code);
  }
}

TEST_F(TaskTableTest, FailedLaunchSaysWhyAndFreesTheUnits) {
  runner.refusal = "no such program";
  ASSERT_TRUE(table.start(work(kFirst, 2, {"d"})));
  pool.served(kFirst, Served{});
  EXPECT_EQ(how(kFirst), "could_not_start");
  EXPECT_EQ(pool.finished.at(0).second, false);
  EXPECT_EQ(table.running_units(), 0u);
}

TEST_F(TaskTableTest, FailedCommitIsNotASuccess) {
  ASSERT_TRUE(table.start(work(kFirst, 1, {"d"})));
  pool.served(kFirst, Served{});
  pool.commit = tl::unexpected(CommitError({ErrorCode::kExhausted, "no room"}, 4096));
  table.exited(kFirst, exit_code(0));
  EXPECT_EQ(how(kFirst), "data_failed");
  EXPECT_EQ(events<ExitedEvent>().back().exit.no_room_bytes, 4096U);
}

TEST_F(TaskTableTest, FailedTaskCommitsNothing) {
  ASSERT_TRUE(table.start(work(kFirst, 1, {"d"})));
  pool.served(kFirst, Served{});
  table.exited(kFirst, exit_code(3));
  EXPECT_EQ(pool.finished.at(0).second, false);
  EXPECT_EQ(how(kFirst), "exited");
}

TEST_F(TaskTableTest, CancelInEveryStage) {
  ASSERT_TRUE(table.start(work(kFirst, 2)));
  ASSERT_TRUE(table.start(work(kSecond, 1, {"d"})));
  ASSERT_TRUE(table.start(work(kThird, 1, {"d"})));
  pool.served(kSecond, Served{});

  table.cancel(kThird, "no more wanted");  // staging
  EXPECT_EQ(pool.cancelled, std::vector{kThird});
  EXPECT_EQ(how(kThird), "not ended");
  pool.served(kThird, fail(ErrorCode::kConflict, "cancelled"));
  EXPECT_EQ(how(kThird), "cancelled");

  table.cancel(kSecond, "no more wanted");  // ready
  EXPECT_EQ(how(kSecond), "cancelled");
  EXPECT_EQ(pool.finished, (std::vector<std::pair<AttemptId, bool>>{{kSecond, false}}));

  table.cancel(kFirst, "no more wanted");  // running
  EXPECT_EQ(runner.cancelled, std::vector{kFirst});
  table.cancel(AttemptId{99, 1}, "unknown");
}

TEST_F(TaskTableTest, CancelThatLosesTheRaceWithServingStillCancels) {
  ASSERT_TRUE(table.start(work(kFirst, 1, {"d"})));
  table.cancel(kFirst, "no more wanted");
  pool.served(kFirst, Served{});
  EXPECT_EQ(how(kFirst), "cancelled");
  EXPECT_TRUE(runner.launched.empty());
  EXPECT_EQ(pool.finished.size(), 1u) << "what was served is let go of";
}

TEST_F(TaskTableTest, NewerAttemptWaitsForTheEndOfTheOlder) {
  ASSERT_TRUE(table.start(work({1, 1})));
  ASSERT_TRUE(table.start(work({1, 2})));
  EXPECT_EQ(runner.cancelled, (std::vector<AttemptId>{{1, 1}}));
  EXPECT_EQ(runner.launched.size(), 1u);
  table.exited({1, 1}, exit_code(0));
  EXPECT_EQ(runner.launched, (std::vector<AttemptId>{{1, 1}, {1, 2}}));
  EXPECT_TRUE(table.start(work({1, 1}))) << "known, so nothing happens";
  EXPECT_EQ(table.start(work({1, 0})).error().code, ErrorCode::kConflict);
}

TEST_F(TaskTableTest, NothingIsLaunchedWithoutALease) {
  table.lease_granted(clock.boot_ns() + 100);
  clock.advance_ns(200);
  ASSERT_TRUE(table.start(work(kFirst)));
  EXPECT_TRUE(runner.launched.empty());
  table.lease_granted(clock.boot_ns() + 100);
  EXPECT_EQ(runner.launched, std::vector{kFirst});
}

TEST_F(TaskTableTest, LeaseEndTakesAllThatWaits) {
  ASSERT_TRUE(table.start(work(kFirst, 2)));
  ASSERT_TRUE(table.start(work(kSecond, 1)));
  ASSERT_TRUE(table.start(work(kThird, 1, {"d"})));
  table.lease_ended();
  EXPECT_EQ(how(kFirst), "not ended") << "the executor ends what runs";
  EXPECT_EQ(how(kSecond), "lease_expired");
  pool.served(kThird, fail(ErrorCode::kConflict, "cancelled"));
  EXPECT_EQ(how(kThird), "lease_expired");
}

TEST_F(TaskTableTest, ReleaseForgets) {
  ASSERT_TRUE(table.start(work(kFirst)));
  table.exited(kFirst, exit_code(0));
  table.release(kFirst);
  EXPECT_TRUE(table.attempts().live().empty());
  EXPECT_EQ(runner.forgotten, std::vector<uint64_t>{kFirst.task});

  ASSERT_TRUE(table.start(work(kSecond)));
  table.release(kSecond);
  EXPECT_EQ(runner.cancelled, std::vector{kSecond});
  table.exited(kSecond, exit_code(0));
  EXPECT_TRUE(table.attempts().live().empty());
}

TEST_F(TaskTableTest, ADrainedTableLetsEndWhatRuns) {
  ASSERT_TRUE(table.start(work(kFirst, 2)));
  table.started(kFirst, 7);
  ASSERT_TRUE(table.start(work(kSecond)));
  ASSERT_TRUE(table.start(work(kThird, 1, {"d"})));
  table.drain("the node is stopping");
  EXPECT_EQ(how(kSecond), "cancelled") << "it has not begun";
  EXPECT_TRUE(runner.cancelled.empty());
  EXPECT_EQ(table.start(work({4, 1})).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(table.closed_because(), "the node is stopping");
  pool.served(kThird, fail(ErrorCode::kUnavailable, "cancelled"));
  EXPECT_EQ(how(kThird), "cancelled");
  EXPECT_FALSE(table.attempts().idle());
  table.exited(kFirst, exit_code(0));
  EXPECT_EQ(how(kFirst), "exited");
  EXPECT_TRUE(table.attempts().idle());
}

TEST_F(TaskTableTest, ALaunchThatFailsIsTheNodesFault) {
  runner.refusal = "No space left on device";
  ASSERT_TRUE(table.start(work(kFirst)));
  ASSERT_EQ(events<ExitedEvent>().size(), 1u);
  EXPECT_EQ(how(kFirst), "could_not_start");
  EXPECT_TRUE(events<ExitedEvent>()[0].exit.node_fault);
}

}  // namespace
}  // namespace tierpilot::agent

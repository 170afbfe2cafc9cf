// What a node tells of attempts that have ended, and for how long it knows them.
#include "tests/unit/daemon/task_table_fixture.h"

namespace tierpilot::agent {
namespace {

TEST_F(TaskTableTest, AnEndSaysWhenItWas) {
  constexpr int64_t kSecond_ns = 1'000'000'000;
  table.restore({{{5, 1}, exit_code(0)}});
  auto early = exit_code(0);
  early.process->started_boot_ns = 5 * kSecond_ns;
  early.process->wall_ms = 2'000;
  table.restore({{{6, 1}, early}});
  ASSERT_TRUE(table.start(work(kFirst)));
  clock.advance_ns(9 * kSecond_ns);
  table.exited(kFirst, exit_code(0));
  const auto ends = events<ExitedEvent>();
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_EQ(ends[0].at_ns, 0) << "under an earlier daemon, which did not write it down";
  EXPECT_EQ(ends[1].at_ns, 7 * kSecond_ns);
  EXPECT_EQ(ends[2].at_ns, clock.boot_ns());
}

// A promise may be due in between.
TEST_F(TaskTableTest, AnEndThatADaemonHearsOfLateWasWhenItsProcessEnded) {
  constexpr int64_t kSecond_ns = 1'000'000'000;
  for (const auto attempt : {kFirst, kSecond}) ASSERT_TRUE(table.start(work(attempt)));
  auto exit = exit_code(0);
  exit.process->started_boot_ns = clock.boot_ns();
  exit.process->wall_ms = 2'000;
  const int64_t ended_ns = clock.boot_ns() + 2 * kSecond_ns;
  clock.advance_ns(9 * kSecond_ns);
  table.exited(kFirst, exit);
  exit.written.emplace_back();
  table.exited(kSecond, exit);
  const auto ends = events<ExitedEvent>();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].at_ns, ended_ns);
  EXPECT_EQ(ends[1].at_ns, clock.boot_ns()) << "what it wrote is there now";
}

TEST_F(TaskTableTest, EndsOfAnEarlierDaemonAreToldUntilTheyAreAcknowledged) {
  table.restore({{kFirst, exit_code(3)}});
  EXPECT_EQ(how(kFirst), "exited");
  EXPECT_EQ(table.attempts().live(), std::vector{kFirst});
  EXPECT_TRUE(table.attempts().idle());
  ASSERT_TRUE(table.start(work(kFirst))) << "it is known";
  EXPECT_TRUE(runner.launched.empty());
  table.exit_acknowledged(kFirst);
  EXPECT_EQ(runner.told, std::vector{kFirst});
  EXPECT_TRUE(table.attempts().live().empty());
}

TEST_F(TaskTableTest, WhatIsAcknowledgedIsForgottenAtTheNextRegistration) {
  for (const auto attempt : {kFirst, kSecond, kThird}) ASSERT_TRUE(table.start(work(attempt)));
  table.exited(kFirst, exit_code(0));
  table.exited(kSecond, exit_code(0));
  table.exit_acknowledged(kFirst);
  EXPECT_EQ(table.attempts().remembered(), 3u);
  table.registered();
  EXPECT_EQ(table.attempts().remembered(), 2u);
  EXPECT_EQ(runner.forgotten, std::vector{kFirst.task});
  EXPECT_EQ(table.attempts().live(), (std::vector{kSecond, kThird}));
}

TEST(TaskTableLimits, EndedAttemptsAreForgottenOldestFirst) {
  FakePool pool;
  FakeRunner runner;
  ManualClock clock;
  TaskTable table({.cpus = {0}, .units = 1, .max_live = 2, .max_ended = 3}, pool, runner, clock,
                  [](EventBody) {});
  table.lease_granted(INT64_MAX);
  for (uint64_t task = 1; task <= 5; ++task) {
    ASSERT_TRUE(table.start({.attempt = {task, 1}, .argv = {"x"}}));
    ExitReport exit;
    exit.how = TaskEnd::kExited;
    table.exited({task, 1}, exit);
    table.exit_acknowledged({task, 1});
  }
  ASSERT_TRUE(table.start({.attempt = {5, 1}, .argv = {"x"}}));
  EXPECT_EQ(runner.launched.size(), 5u);
  ASSERT_TRUE(table.start({.attempt = {6, 1}, .argv = {"x"}}));
  ASSERT_TRUE(table.start({.attempt = {7, 1}, .argv = {"x"}}));
  EXPECT_EQ(table.start({.attempt = {8, 1}, .argv = {"x"}}).error().code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace tierpilot::agent

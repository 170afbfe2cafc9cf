// Elastic attempts: what they get of a node's units, and who comes first.
#include <gtest/gtest.h>

#include "task_table_fixture.h"

namespace tierpilot::agent {
namespace {

// Two units, CPUs 4 and 5.
class TaskShareTest : public TaskTableTest {
 protected:
  void run(AttemptId id, uint32_t units, uint32_t max_units = 0) {
    auto assignment = work(id, units);
    assignment.max_units = max_units;
    ASSERT_TRUE(table.start(std::move(assignment)));
    table.started(id, 100 + static_cast<int32_t>(id.task));
  }
  double cores(AttemptId id) { return runner.shares[id].cores; }
};

TEST_F(TaskShareTest, BeginsWithItsLeastAndGetsWhatNobodyHas) {
  run(kFirst, 1, 2);
  EXPECT_EQ(table.shares().of(kFirst), 1000u);
  EXPECT_EQ(cores(kFirst), 1);
  EXPECT_EQ(runner.shares[kFirst].cpus, (std::vector{4, 5}));
  EXPECT_EQ(table.shares().set(kFirst, 1500).value(), 1500u);
  EXPECT_EQ(cores(kFirst), 1.5);
  EXPECT_EQ(table.shares().set(kFirst, 9000).value(), 2000u) << "its most";
  EXPECT_EQ(table.shares().set(kFirst, 0).value(), 1000u) << "its least";
}

TEST_F(TaskShareTest, WhatAnotherOneHasIsNotGiven) {
  TaskTable wide({.cpus = {0, 1, 2, 3}, .units = 4}, pool, runner, clock, [](EventBody) {});
  wide.lease_granted(INT64_MAX);
  for (const auto id : {kFirst, kSecond}) {
    auto assignment = work(id);
    assignment.max_units = 4;
    ASSERT_TRUE(wide.start(std::move(assignment)));
    wide.started(id, 7);
  }
  EXPECT_EQ(wide.shares().set(kFirst, 2500).value(), 2500u);
  EXPECT_EQ(wide.shares().set(kSecond, 3000).value(), 1500u);
  // A task that is not elastic takes its units, and its CPUs, at once.
  ASSERT_TRUE(wide.start(work(kThird, 1)));
  EXPECT_EQ(wide.shares().of(kFirst), 1750u);
  EXPECT_EQ(wide.shares().of(kSecond), 1250u);
  EXPECT_EQ(runner.shares[kFirst].cpus.size(), 3u);
  EXPECT_EQ(runner.cpus[kThird].size(), 1u);
  for (const int cpu : runner.shares[kFirst].cpus) EXPECT_NE(cpu, runner.cpus[kThird][0]);
  wide.exited(kThird, exit_code(0));
  EXPECT_EQ(runner.shares[kFirst].cpus.size(), 4u);
}

TEST_F(TaskShareTest, OnlyRunningElasticOnesHaveShares) {
  EXPECT_EQ(table.shares().set(kFirst, 1000).error().code, ErrorCode::kNotFound);
  run(kFirst, 1);
  EXPECT_EQ(table.shares().set(kFirst, 1000).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(table.shares().of(kFirst), 0u);
  EXPECT_FALSE(runner.shares.contains(kFirst));
  run(kSecond, 1, 1);
  table.exited(kSecond, exit_code(0));
  EXPECT_EQ(table.shares().set(kSecond, 1000).error().code, ErrorCode::kNotFound);
}

TEST_F(TaskShareTest, UnitsMayBeLessThanACpu) {
  TaskTable narrow({.cpus = {0, 1}, .units = 8}, pool, runner, clock, [](EventBody) {});
  narrow.lease_granted(INT64_MAX);
  auto assignment = work(kFirst);
  assignment.max_units = 8;
  ASSERT_TRUE(narrow.start(std::move(assignment)));
  narrow.started(kFirst, 7);
  EXPECT_EQ(cores(kFirst), 0.25);
  EXPECT_EQ(narrow.shares().set(kFirst, 8000).value(), 8000u);
  EXPECT_EQ(cores(kFirst), 2);
}

// Parts of a unit that is shared, CPUs 6 and 7.
class TaskPartTest : public TaskTableTest {
 protected:
  TaskTable sharing{{.cpus = {4, 5}, .units = 2, .shared_units = {{.cpus = {6, 7}}}},
                    pool,
                    runner,
                    clock,
                    [](EventBody) {}};
  void SetUp() override { sharing.lease_granted(INT64_MAX); }
  Status run(AttemptId id, uint32_t milli, uint32_t unit = 0) {
    auto assignment = work(id, 1);
    assignment.part = UnitPart{unit, milli};
    auto started = sharing.start(std::move(assignment));
    if (started) sharing.started(id, 100 + static_cast<int32_t>(id.task));
    return started;
  }
};

TEST_F(TaskPartTest, HasItsPartOfTheUnitsCpus) {
  ASSERT_TRUE(run(kFirst, 250));
  EXPECT_EQ(runner.cpus[kFirst], (std::vector{6, 7}));
  EXPECT_EQ(runner.shares[kFirst].cores, 0.5);
  EXPECT_EQ(sharing.shares().of(kFirst), 250u);
  EXPECT_EQ(sharing.shares().parts(), std::vector{kFirst});
  EXPECT_EQ(sharing.running_units(), 0u);
}

TEST_F(TaskPartTest, TogetherTheyHaveNoMoreThanTheUnit) {
  ASSERT_TRUE(run(kFirst, 700));
  ASSERT_TRUE(run(kSecond, 700));
  EXPECT_EQ(sharing.shares().of(kSecond), 300u);
  EXPECT_EQ(sharing.shares().set(kFirst, 400).value(), 400u);
  EXPECT_EQ(sharing.shares().set(kSecond, 900).value(), 600u);
  sharing.exited(kFirst, exit_code(0));
  EXPECT_EQ(sharing.shares().set(kSecond, 5000).value(), 1000u);
}

TEST_F(TaskPartTest, NeitherWaitsForUnitsNorTakesThem) {
  ASSERT_TRUE(sharing.start(work(kFirst, 2)));
  ASSERT_TRUE(sharing.start(work(kSecond, 2)));  // waits for the first
  ASSERT_TRUE(run(kThird, 100));
  EXPECT_EQ(sharing.shares().of(kThird), 100u);
}

TEST_F(TaskPartTest, AUnitThatTheNodeDoesNotHaveIsRefused) {
  const auto refused = run(kFirst, 100, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace tierpilot::agent

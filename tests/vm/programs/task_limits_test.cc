// The executor's limits, held by a kernel that has every controller: what a task cannot get past.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "tests/unit/exec/harness.h"

namespace tierpilot {
namespace {

int64_t figure(const std::string& text, const std::string& key) {
  std::istringstream words(text);
  int64_t value = 0;
  for (std::string name; words >> name >> value;) {
    if (name == key) return value;
  }
  ADD_FAILURE() << "no " << key << " in: " << text;
  return 0;
}

// Tests of one group; the guest has made "/tierpilot" with every controller and "/no-cpuset".
class TaskLimits : public ExecutorTest {
 protected:
  void SetUp() override { start({.cgroup = "/tierpilot/node"}); }
  void restart_in(const std::string& cgroup) { start({.cgroup = cgroup}); }
  std::string group_file(uint64_t task, const std::string& file) const {
    return read_text(fmt::format("{}/task-{}.1/{}", executor_->limits().cgroup, task, file));
  }
  std::string log_of(uint64_t task) {
    return read_text(directory_.path(fmt::format("{}/stdout.log", task)));
  }
  // A task that counts for as long as it runs.
  TaskLaunch counter(uint64_t id) {
    return shell(id, "i=0; while :; do i=$((i+1)); echo $i > count; done");
  }
  std::string count() { return read_text(directory_.path("count")); }
  bool counts() {
    const auto before = count();
    return wait_until([&] { return count() != before; });
  }
  void freeze_counter() {
    ASSERT_TRUE(executor_->launch(counter(7)));
    listener_->wait_started(7);
    ASSERT_TRUE(counts());
    const auto status = executor_->freeze(7, 1);
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_TRUE(wait_until([&] { return figure(group_file(7, "cgroup.events"), "frozen") == 1; }));
  }
};

TEST_F(TaskLimits, EveryControllerIsOn) {
  const auto& limits = executor_->limits();
  for (const auto* state : {&limits.memory, &limits.cpu, &limits.cpuset, &limits.io, &limits.kill})
    EXPECT_TRUE(state->on) << state->why_not;
}

TEST_F(TaskLimits, ATaskOverItsMemoryLimitEndsAndSaysSo) {
  // tail keeps what it may still have to print.
  auto task =
      shell(7, "head -c 200000000 /dev/zero | tail -c 200000000 > /dev/null; echo survived");
  task.memory_limit_bytes = 64 * kMiB;
  const auto exit = run(task);
  EXPECT_EQ(exit.how, TaskEnd::kMemoryLimit);
  EXPECT_NE(exit.reason.find("memory limit of 64"), std::string::npos) << exit.reason;
  EXPECT_LE(exit.cgroup_peak_bytes.value_or(UINT64_MAX), 64 * kMiB);
  EXPECT_GT(exit.cgroup_peak_bytes.value_or(0), 32 * kMiB);
  EXPECT_EQ(log_of(7), "") << "all of the task ends, not one process of it";
}

TEST_F(TaskLimits, FilesInMemoryCount) {
  auto task = shell(7, "dd if=/dev/zero of=/dev/shm/large bs=1M count=200; rm /dev/shm/large");
  task.memory_limit_bytes = 32 * kMiB;
  EXPECT_EQ(run(task).how, TaskEnd::kMemoryLimit);
  std::filesystem::remove("/dev/shm/large");
}

// As the library has it on a NUMA node: shared memory of the task's own.
TEST_F(TaskLimits, WhatIsSwappedToMemoryIsBesideTheLimit) {
  auto task = shell(7,
                    "dd if=/dev/zero of=/dev/shm/swapped bs=1M count=60 && echo survived;"
                    "rm /dev/shm/swapped");
  task.memory_limit_bytes = 32 * kMiB;
  task.swap_memory_bytes = 64 * kMiB;
  EXPECT_EQ(run(task).exit_code, 0);
  EXPECT_EQ(log_of(7), "survived\n");
}

TEST_F(TaskLimits, AnotherTasksMemoryLimitEndsNoNeighbour) {
  ASSERT_TRUE(executor_->launch(shell(8, "sleep 1000")));
  listener_->wait_started(8);
  auto task = shell(7, "head -c 200000000 /dev/zero | tail -c 200000000 > /dev/null");
  task.memory_limit_bytes = 32 * kMiB;
  EXPECT_EQ(run(task).how, TaskEnd::kMemoryLimit);
  EXPECT_EQ(listener_->exits_of(8), 0u);
}

TEST_F(TaskLimits, WithinItsMemoryLimitATaskLives) {
  auto task = shell(7, "head -c 20000000 /dev/zero | tail -c 20000000 > /dev/null");
  task.memory_limit_bytes = 64 * kMiB;
  EXPECT_EQ(run(task).exit_code, 0);
}

TEST_F(TaskLimits, ATaskCannotLeaveItsCpus) {
  auto task = shell(7,
                    "grep Cpus_allowed_list /proc/self/status | tr -d '\\t ';"
                    "taskset 1 true && echo left; taskset 3 grep -c . /proc/self/status >/dev/null;"
                    "taskset 3 grep Cpus_allowed_list /proc/self/status | tr -d '\\t '");
  task.cpus = {1};
  EXPECT_EQ(run(task).how, TaskEnd::kExited);
  EXPECT_EQ(log_of(7), "Cpus_allowed_list:1\nCpus_allowed_list:1\n");
}

TEST_F(TaskLimits, WithoutCpusetsAQuotaThrottles) {
  restart_in("/no-cpuset/node");
  ASSERT_FALSE(executor_->limits().cpuset.on);
  ASSERT_TRUE(executor_->limits().cpu.on) << executor_->limits().cpu.why_not;
  // Two loops that undo the affinity mask: without the quota they would use two CPUs.
  auto task = shell(7,
                    "for n in 1 2; do taskset 3 sh -c 'while :; do :; done' & done; sleep 3;"
                    "echo done; sleep 1000");
  task.cpus = {0};
  ASSERT_TRUE(executor_->launch(task));
  ASSERT_TRUE(wait_until([&] { return log_of(7) == "done\n"; }));
  EXPECT_GT(figure(group_file(7, "cpu.stat"), "nr_throttled"), 0);
  EXPECT_GT(figure(group_file(7, "cpu.stat"), "throttled_usec"), 0);
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  const auto exit = listener_->wait_exit(7);
  const auto used_ms = (exit.cpu_user_ns.value_or(0) + exit.cpu_system_ns.value_or(0)) / 1'000'000;
  EXPECT_GT(used_ms, 500);
  EXPECT_LT(used_ms, exit.wall_ms.value_or(0) * 5 / 4);
}

// What an elastic task's share is made of: a third of a CPU, then both.
TEST_F(TaskLimits, WhileItRunsATaskIsHeldToAnotherShare) {
  auto task = shell(7, "for n in 1 2; do sh -c 'while :; do :; done' & done; wait");
  task.cpus = {0, 1};
  ASSERT_TRUE(executor_->launch(task));
  listener_->wait_started(7);
  const auto used_share = [&] {
    const auto cpu_us = [&] { return figure(group_file(7, "cpu.stat"), "usage_usec"); };
    const auto wall_ns = [] { return system_clock().boot_ns(); };
    const int64_t cpu_before = cpu_us(), wall_before = wall_ns();
    std::this_thread::sleep_for(std::chrono::seconds(10));
    return static_cast<double>(cpu_us() - cpu_before) * 1e3 /
           static_cast<double>(wall_ns() - wall_before);
  };
  auto confined = executor_->confine(7, 1, {0, 1}, 1.0 / 3);
  ASSERT_TRUE(confined) << confined.error().message;
  EXPECT_EQ(group_file(7, "cpu.max"), "33333 100000\n");
  const double third = used_share();
  EXPECT_LT(third, 1.0 / 3 + 0.05);
  confined = executor_->confine(7, 1, {1}, 2);
  ASSERT_TRUE(confined) << confined.error().message;
  EXPECT_EQ(group_file(7, "cpuset.cpus"), "1\n");
  const double one = used_share();
  EXPECT_LT(one, 1.05) << "of one CPU there is no more";
  EXPECT_GT(one, third);
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  listener_->wait_exit(7);
}

TEST_F(TaskLimits, AFrozenTaskStandsStillUntilItIsThawed) {
  freeze_counter();
  const auto before = count();
  const auto cpu_before = figure(group_file(7, "cpu.stat"), "usage_usec");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(count(), before);
  EXPECT_EQ(figure(group_file(7, "cpu.stat"), "usage_usec"), cpu_before);
  ASSERT_TRUE(executor_->thaw(7, 1));
  EXPECT_TRUE(counts());
}

TEST_F(TaskLimits, AFrozenTaskCanBeCancelled) {
  freeze_counter();
  ASSERT_TRUE(executor_->cancel(7, 1, 100));
  const auto exit = listener_->wait_exit(7);
  EXPECT_EQ(exit.how, TaskEnd::kCancelled);
  EXPECT_EQ(exit.reason, "cancelled") << "nothing was left";
}

TEST_F(TaskLimits, AFrozenTaskEndsWithTheLease) {
  start_without_lease({.cgroup = "/tierpilot/node"});
  hold_lease(3'000);
  freeze_counter();
  EXPECT_EQ(listener_->wait_exit(7).how, TaskEnd::kLeaseExpired);
}

TEST_F(TaskLimits, OnlyWhatRunsIsFrozen) {
  const auto status = executor_->freeze(7, 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tierpilot

#include "daemon/exec/exit_report.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tierpilot {
namespace {

constexpr int kKilled = SIGKILL;  // as wait(2) encodes it
constexpr int kExitedWith3 = 3 << 8;

const TaskLaunch kTask{.task_id = 7, .attempt = 2, .memory_limit_bytes = 64 << 20};

CgroupFigures memory(bool hit_limit, bool oom_killed) {
  return {.hit_memory_limit = hit_limit, .oom_killed = oom_killed};
}

TEST(ExitReport, TellsTheMemoryLimitFromOtherKills) {
  auto exit = exit_report(kTask, {.wait_status = kKilled, .cgroup = memory(true, true)});
  EXPECT_EQ(exit.how, TaskEnd::kMemoryLimit);
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_EQ(exit.reason, "needed more than its memory limit of 64.0 MiB");

  exit = exit_report(kTask, {.wait_status = kKilled, .cgroup = memory(false, true)});
  EXPECT_EQ(exit.how, TaskEnd::kSignalled);
  EXPECT_EQ(exit.reason, "killed by signal 9 (Killed: the machine ran out of memory)");

  exit = exit_report(kTask, {.wait_status = kKilled, .cgroup = memory(false, false)});
  EXPECT_EQ(exit.reason, "killed by signal 9 (Killed)");

  exit = exit_report(kTask, {.wait_status = kExitedWith3, .cgroup = memory(true, true)});
  EXPECT_EQ(exit.how, TaskEnd::kExited) << "it lived on without the process that was killed";
}

TEST(ExitReport, AStopExplainsTheSignalThatFollowed) {
  const auto exit = exit_report(kTask, {.wait_status = kKilled,
                                        .stopped = TaskEnd::kLeaseExpired,
                                        .started_boot_ns = 1'000'000'000,
                                        .ended_boot_ns = 3'500'000'000});
  EXPECT_EQ(exit.how, TaskEnd::kLeaseExpired);
  EXPECT_EQ(exit.wall_ms, 2500);
  EXPECT_EQ(exit.started_boot_ns, 1'000'000'000);
}

TEST(ExitReport, AFailedStartHasNoFigures) {
  const auto exit = exit_report(kTask, {.wait_status = 127 << 8, .start_fault = "no room"});
  EXPECT_EQ(exit.how, TaskEnd::kCouldNotStart);
  EXPECT_EQ(exit.reason, "task 7: no room");
  EXPECT_FALSE(exit.exit_code || exit.cpu_user_ns || exit.max_rss_bytes || exit.wall_ms);
}

TEST(ExitReport, PrefersTheCgroupsFigures) {
  const CgroupFigures figures{.cpu_user_ns = 5, .peak_bytes = 4096, .read_bytes = 7};
  const auto exit = exit_report(kTask, {.wait_status = 0, .cgroup = figures});
  EXPECT_EQ(exit.cpu_user_ns, 5);
  EXPECT_EQ(exit.cgroup_peak_bytes, 4096u);
  EXPECT_EQ(exit.read_bytes, 7u);
  EXPECT_TRUE(exit.cpu_system_ns) << "from the processes, as the cgroup does not say";
}

TEST(ExitReport, SaysWhatIsLeft) {
  const auto exit = exit_report(kTask, {.stopped = TaskEnd::kCancelled, .unkilled = 3});
  EXPECT_EQ(exit.reason, "cancelled; 3 of its processes could not be killed yet");
}

}  // namespace
}  // namespace tierpilot

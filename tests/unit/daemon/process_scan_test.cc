#include "daemon/agent/paging/process_scan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "fake_machine.h"

namespace tierpilot::agent {
namespace {

TEST(ProcessScan, NamesMayHoldAnything) {
  const auto process = parse_process_stat(
      "12 (a) S (b) R 3 12 12 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 7890 1000 25 "
      "18446744073709551615");
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(process->pid, 12);
  EXPECT_EQ(process->parent, 3);
  EXPECT_EQ(process->name, "a) S (b");
  EXPECT_EQ(process->started_ticks, 7890u);
  EXPECT_EQ(process->resident_bytes, 25u * static_cast<uint64_t>(::getpagesize()));
}

TEST(ProcessScan, RefusesWhatTheKernelWouldNotWrite) {
  const std::string good = "12 (a) R 3 12 12 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 7890 1000 25";
  ASSERT_TRUE(parse_process_stat(good));
  for (size_t length = 0; length + 2 < good.size(); ++length)
    EXPECT_FALSE(parse_process_stat(good.substr(0, length))) << length;
  EXPECT_FALSE(parse_process_stat("x" + good));
  EXPECT_FALSE(parse_process_stat("12 )a( R 3 12 12 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 7890 1000 25"));
}

TEST(ProcessScan, FindsThisProcess) {
  const auto processes = scan_processes(Sysroot("/"), 100'000);
  const auto self = std::find_if(processes.begin(), processes.end(),
                                 [](const auto& process) { return process.pid == ::getpid(); });
  ASSERT_NE(self, processes.end());
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_GT(self->resident_bytes, 0u);
  EXPECT_EQ(scan_processes(Sysroot("/"), 1).size(), 1u);
}

TEST(ProcessScan, LeavesOutWhatIsNoProcess) {
  FakeMachine machine;
  machine.add_process(5, 1, "a", kMiB);
  machine.write("/proc/6/stat", "garbage");
  machine.write("/proc/meminfo", "MemTotal: 1 kB\n");
  machine.write("/proc/7/comm", "no stat\n");
  const auto processes = scan_processes(machine.sysroot, 100);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].resident_bytes, kMiB);
}

}  // namespace
}  // namespace tierpilot::agent

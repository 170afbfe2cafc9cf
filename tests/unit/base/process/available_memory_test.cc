// What of the host's memory can still be had, by files that stand in for the kernel's.
#include "base/process/available_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

class AvailableMemory : public ::testing::Test {
 protected:
  AvailableMemory() {
    char made[] = "/tmp/available_memory_XXXXXX";
    root_ = mkdtemp(made);
    write("proc/meminfo", "MemTotal:  4000000 kB\nMemFree:   1000 kB\nMemAvailable:   2000 kB\n");
  }
  ~AvailableMemory() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  std::optional<int64_t> available() { return available_memory_bytes(root_.string()); }

  fs::path root_;
};

TEST_F(AvailableMemory, IsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(available(), 2000 * 1024);
  EXPECT_GT(available_memory_bytes(), 0);
}

TEST_F(AvailableMemory, IsNoMoreThanAnyCgroupAboveTheProcessLeaves) {
  write("proc/self/cgroup", "0::/tasks/one\n");
  write("sys/fs/cgroup/tasks/memory.max", "900000\n");
  write("sys/fs/cgroup/tasks/memory.current", "400000\n");
  write("sys/fs/cgroup/tasks/one/memory.max", "max\n");
  write("sys/fs/cgroup/tasks/one/memory.current", "300000\n");
  EXPECT_EQ(available(), 500000);
  write("sys/fs/cgroup/tasks/memory.current", "1000000\n");
  EXPECT_EQ(available(), 0);
}

// The kernel gives it back before it kills anybody.
TEST_F(AvailableMemory, WhatIsCachedOfFilesCanBeHad) {
  write("proc/self/cgroup", "0::/task\n");
  write("sys/fs/cgroup/task/memory.max", "900000\n");
  write("sys/fs/cgroup/task/memory.current", "900000\n");
  EXPECT_EQ(available(), 0);
  write("sys/fs/cgroup/task/memory.stat",
        "anon 100000\ninactive_file 500000\nactive_file 200000\n");
  EXPECT_EQ(available(), 700000);
}

// Where the process's own cgroup looks like the topmost.
TEST_F(AvailableMemory, IsNoMoreThanAContainerLeaves) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "900000\n");
  write("sys/fs/cgroup/memory.current", "300000\n");
  EXPECT_EQ(available(), 600000);
}

TEST_F(AvailableMemory, IsNothingWhereTheKernelDoesNotTell) {
  write("proc/meminfo", "MemTotal:  4000000 kB\n");
  EXPECT_EQ(available(), std::nullopt);
}

}  // namespace
}  // namespace tierpilot

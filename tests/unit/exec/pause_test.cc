// What the warden does about a pause of the machine that its hardware clock tells: a file here.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "daemon/exec/hardware_clock.h"
#include "tests/unit/exec/harness.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNow_s = 1'700'000'000;

class Pause : public ExecutorTest {
 protected:
  void SetUp() override { set_clock(kNow_s); }
  void set_clock(int64_t seconds) {
    const fs::path folder = root_.path("sys/class/rtc/rtc0");
    fs::create_directories(folder);
    std::ofstream(folder / "new") << seconds << "\n";
    fs::rename(folder / "new", folder / "since_epoch");
  }
  void describe_cpu(const std::string& flags) {
    fs::create_directories(root_.path("proc"));
    std::ofstream(root_.path("proc/cpuinfo")) << "processor\t: 0\nflags\t\t: " << flags << "\n";
  }
  void start_here() { start_without_lease({.sysroot = Sysroot(root_.path())}); }

  TempDirectory root_;
};

TEST_F(Pause, LongerThanTheLeaseEndsItsTasks) {
  start_here();
  hold_lease(600'000);
  ASSERT_TRUE(executor_->launch(shell(7, "sleep 1000")));
  listener_->wait_started(7);
  set_clock(kNow_s + 700);
  EXPECT_EQ(listener_->wait_exit(7).how, TaskEnd::kLeaseExpired);
  // The daemon's own clock says that the lease holds.
  const auto refused = run(shell(8, "true"));
  EXPECT_EQ(refused.how, TaskEnd::kCouldNotStart);
  EXPECT_TRUE(refused.node_fault);
  hold_lease();
  EXPECT_EQ(run(shell(9, "exit 5")).exit_code, 5);
}

TEST_F(Pause, ShorterThanTheLeaseEndsNothing) {
  start_here();
  hold_lease(600'000);
  ASSERT_TRUE(executor_->launch(shell(7, "sleep 1000")));
  listener_->wait_started(7);
  set_clock(kNow_s + 100);
  for (int i = 0; i < 15; ++i) listener_->listen(100);
  EXPECT_TRUE(listener_->exits.empty());
}

TEST_F(Pause, ALeaseThatWasAskedForBeforeItGivesNothing) {
  start_here();
  hold_lease(600'000);
  const int64_t before_ns = system_clock().boot_ns();
  ASSERT_TRUE(executor_->launch(shell(7, "sleep 1000")));
  listener_->wait_started(7);
  set_clock(kNow_s + 700);
  listener_->wait_exit(7);
  ASSERT_TRUE(executor_->extend_lease(before_ns + 700'000'000'000, before_ns));
  EXPECT_EQ(run(shell(8, "true")).how, TaskEnd::kCouldNotStart);
}

TEST_F(Pause, IsWatchedForInVirtualMachinesWithAClock) {
  start_here();
  EXPECT_EQ(executor_->why_pauses_pass_unnoticed(), "");
  describe_cpu("fpu hypervisor sse2");
  EXPECT_TRUE(HardwareClock::find(Sysroot(root_.path())));
  describe_cpu("fpu sse2");
  start_here();
  EXPECT_EQ(executor_->why_pauses_pass_unnoticed(), "not needed: this is no virtual machine");
  TempDirectory empty;
  const auto none = HardwareClock::find(Sysroot(empty.path()));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no hardware clock"), std::string::npos);
}

TEST_F(Pause, AClockThatSaysNonsenseIsNotBelieved) {
  start_here();
  hold_lease(600'000);
  ASSERT_TRUE(executor_->launch(shell(7, "sleep 1000")));
  listener_->wait_started(7);
  for (const int64_t nonsense : {int64_t{-1}, INT64_MAX, INT64_MIN, kNow_s})
    for (int i = 0; i < 8; ++i, set_clock(nonsense)) listener_->listen(100);
  EXPECT_TRUE(listener_->exits.empty());
}

}  // namespace
}  // namespace tierpilot

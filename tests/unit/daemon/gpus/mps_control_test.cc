// Against a program that speaks as nvidia-cuda-mps-control does.
#include "daemon/agent/gpus/mps_control.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>

#include "daemon/agent/gpus/gpu_poll.h"
#include "daemon/agent/gpus/mps_processes.h"

namespace tierpilot::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class MpsControlTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tierpilot-mps-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(folder_); }
  MpsOptions options(int64_t timeout_ms = 20'000) const {
    return {.program = SOURCE_ROOT "/tests/fake_mps/nvidia-cuda-mps-control",
            .gpu = "GPU-a",
            .folder = folder_ / "GPU-a",
            .timeout_ms = timeout_ms};
  }
  fs::path pipe(const char* file) const { return folder_ / "GPU-a" / "pipe" / file; }
  int pid() const {
    int pid = 0;
    std::ifstream(pipe("nvidia-cuda-mps-control.pid")) >> pid;
    return pid;
  }
  fs::path folder_;
};

TEST_F(MpsControlTest, IsStartedOnceAndAgainWhenItHasGone) {
  MpsControl control(options());
  auto begun = control.keep_running();
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_TRUE(*begun);
  const int first = pid();
  EXPECT_FALSE(*control.keep_running());
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  for (int tries = 0; tries < 1000; ++tries) {
    if (begun = control.keep_running(); begun && *begun) break;
    ::usleep(10'000);
  }
  EXPECT_TRUE(begun && *begun);
  EXPECT_NE(pid(), first);
}

// It runs, and refuses all that it is asked.
TEST_F(MpsControlTest, OneThatHasLostItsFolderIsReplacedWhereNobodyIsOnIt) {
  GpuPoll poll({.library = "no driver",
                .gpu = "GPU-a",
                .mps = options(5000),
                .period_ms = 1,
                .mps_period_ms = 1,
                .mps_pause_ms = 1},
               system_clock(), [](const GpuLook&) {});
  const auto other_than = [this](int before) {
    for (int tries = 0; tries < 2000; ++tries, ::usleep(10'000))
      if (const int now = pid(); now != 0 && now != before) return now;
    return 0;
  };
  const int first = other_than(0);
  ASSERT_NE(first, 0);
  fs::remove(pipe("nvidia-cuda-mps-control.pid"));
  EXPECT_NE(other_than(first), 0);
  EXPECT_NE(::kill(first, 0), 0) << "the old one has ended";
}

TEST_F(MpsControlTest, TellsThatAServerHasGoneWithIt) {
  MpsControl control(options());
  ASSERT_TRUE(control.keep_running());
  const auto before = control.ask();
  ASSERT_TRUE(before);
  EXPECT_FALSE(before->gone);
  ASSERT_FALSE(before->servers.empty());
  ASSERT_EQ(::kill(pid(), SIGKILL), 0);
  Result<bool> begun = false;
  for (int tries = 0; tries < 1000 && !(begun && *begun); ++tries) {
    begun = control.keep_running();
    ::usleep(10'000);
  }
  ASSERT_TRUE(begun && *begun);
  EXPECT_TRUE(control.ask()->gone);
  EXPECT_FALSE(control.ask()->gone) << "once";
}

// An earlier daemon was killed, and its control daemon hangs.
TEST_F(MpsControlTest, OneThatIsLeftAndHangsIsEndedOnceNobodyIsOnIt) {
  const auto environment = MpsControl::client_env(folder_ / "GPU-a");
  fs::create_directories(folder_ / "GPU-a" / "pipe");
  fs::create_directories(folder_ / "GPU-a" / "log");
  auto left = StayingProgram::start({options().program, {"-f"}, environment}, "/dev/null");
  ASSERT_TRUE(left) << left.error().message;
  MpsControl control(options(500));
  for (int tries = 0; tries < 1000 && !control.is_there(); ++tries) ::usleep(10'000);
  std::ofstream(pipe("hang")) << "";
  EXPECT_TRUE(control.is_there());
  const auto beside_tasks = control.keep_running(false);
  ASSERT_FALSE(beside_tasks);
  EXPECT_EQ(beside_tasks.error().code, ErrorCode::kTimeout);
  EXPECT_FALSE(mps_processes(MpsControl::pipes(folder_ / "GPU-a")).empty());
  (void)control.keep_running(true);
  for (int tries = 0; tries < 500 && left->is_running(); ++tries) ::usleep(10'000);
  EXPECT_FALSE(left->is_running());
}

TEST_F(MpsControlTest, LeavesNoProcessBehind) {
  const auto pipes = MpsControl::pipes(folder_ / "GPU-a");
  {
    MpsControl control(options(500));
    for (int tries = 0; tries < 50 && !control.keep_running(); ++tries) continue;
    EXPECT_FALSE(mps_processes(pipes).empty());
    std::ofstream(pipe("hang")) << "";
    EXPECT_FALSE(control.ask());
  }
  EXPECT_TRUE(mps_processes(pipes).empty()) << "though it hangs";
}

TEST_F(MpsControlTest, ItsFoldersAreItsOwnersOnly) {
  MpsControl control(options());
  ASSERT_TRUE(control.keep_running());
  EXPECT_EQ(fs::status(pipe("")).permissions(), fs::perms::owner_all);
}

TEST_F(MpsControlTest, AFaultIsToldOnceUntilTheServerIsWellAgain) {
  MpsControl control(options());
  ASSERT_TRUE(control.keep_running());
  EXPECT_FALSE(control.ask()->faulted);
  std::ofstream(pipe("status")) << "FAULT\n";
  const auto faulted = control.ask();
  ASSERT_TRUE(faulted);
  EXPECT_TRUE(faulted->faulted);
  EXPECT_EQ(faulted->servers.begin()->second, "FAULT");
  EXPECT_FALSE(control.ask()->faulted) << "the same one";
  fs::remove(pipe("status"));
  EXPECT_FALSE(control.ask()->faulted);
  std::ofstream(pipe("status")) << "FAULT\n";
  EXPECT_TRUE(control.ask()->faulted) << "another one";
}

TEST_F(MpsControlTest, AFaultFromWhichItHasRecoveredStandsInItsLog) {
  MpsControl control(options());
  ASSERT_TRUE(control.keep_running());
  std::ofstream log(folder_ / "GPU-a" / "log" / "server.log", std::ios::app);
  log << "[Server 12] New client 7 connected\n" << std::flush;
  EXPECT_FALSE(control.ask()->faulted);
  log << "[Server 12] Default active thread percentage is 100.0\n" << std::flush;
  EXPECT_FALSE(control.ask()->faulted) << "a word that only ends so";
  log << "[Server 12] Client 7 caused a fatal exception\n" << std::flush;
  EXPECT_TRUE(control.ask()->faulted);
  EXPECT_FALSE(control.ask()->faulted);
  // Somebody keeps it short.
  std::ofstream(folder_ / "GPU-a" / "log" / "server.log", std::ios::trunc)
      << "[Server 12] a fault\n";
  EXPECT_TRUE(control.ask()->faulted);
}

TEST_F(MpsControlTest, ItFindsTheServerBesideItAndTheDriversLibrariesWhereTheDaemonDoes) {
  auto elsewhere = options();
  elsewhere.program = folder_ / "nvidia" / "nvidia-cuda-mps-control";
  fs::create_directory(folder_ / "nvidia");
  std::ofstream(elsewhere.program)
      << "#!/bin/sh\necho \"$PATH $LD_LIBRARY_PATH\" > " << folder_.native() << "/seen\nexec "
      << options().program << " \"$@\"\n";
  fs::permissions(elsewhere.program, fs::perms::owner_all);
  ::setenv("LD_LIBRARY_PATH", "/nowhere/lib64", 1);
  MpsControl control(elsewhere);
  const auto begun = control.keep_running();
  ::unsetenv("LD_LIBRARY_PATH");
  ASSERT_TRUE(begun) << begun.error().message;
  std::string path, libraries;
  std::ifstream(folder_ / "seen") >> path >> libraries;
  EXPECT_THAT(path, StartsWith((folder_ / "nvidia").native() + ":"));
  EXPECT_EQ(libraries, "/nowhere/lib64");
}

TEST_F(MpsControlTest, OneThatHangsIsATimeout) {
  MpsControl control(options(500));
  Result<bool> begun = false;
  for (int tries = 0; tries < 50 && !(begun && *begun); ++tries) begun = control.keep_running();
  ASSERT_TRUE(begun) << begun.error().message;
  std::ofstream(pipe("hang")) << "";
  const auto state = control.ask();
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::kTimeout);
  fs::remove(pipe("hang"));
}

TEST_F(MpsControlTest, WhatAKilledDaemonLeftIsEndedFirst) {
  auto left = std::make_unique<MpsControl>(options());
  ASSERT_TRUE(left->keep_running());
  const int first = pid();
  std::ofstream(pipe("slow")) << "";
  MpsControl control(options());
  const auto begun = control.keep_running();
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_NE(pid(), first);
}

TEST_F(MpsControlTest, AProgramThatIsNoneIsNamed) {
  auto wrong = options(300);
  wrong.program = "/bin/false";
  MpsControl control(wrong);
  const auto begun = control.keep_running();
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().message, HasSubstr("GPU-a"));
}

TEST(GpuMeter, AddsUpWhatEachProcessComputed) {
  GpuMeter meter;
  meter.add({{7, 1'000'000, 50}, {8, 1'000'000, 100}});
  // A quarter of a second of half the time, then another of all of it; in any order.
  EXPECT_THAT(meter.add({{7, 1'500'000, 100}, {7, 1'250'000, 50}}),
              UnorderedElementsAre(Pair(7, 375'000'000)));
  EXPECT_EQ(meter.newest_us(), 1'500'000u);
}

TEST(GpuMeter, AfterAPauseOneSampleIsOneSecondAtMost) {
  GpuMeter meter;
  meter.add({{7, 1'000'000, 0}});
  EXPECT_THAT(meter.add({{7, 31'000'000, 100}}), UnorderedElementsAre(Pair(7, 1'000'000'000)));
}

// The driver tells nothing of who did not compute.
TEST(GpuMeter, WhoHadNoTurnDidNotComputeMeanwhile) {
  GpuMeter meter;
  meter.add({{7, 1'000'000, 100}, {8, 1'000'000, 1}});
  meter.add({{8, 1'200'000, 100}}, 200'000);
  meter.add({{8, 1'400'000, 100}}, 200'000);
  EXPECT_THAT(meter.add({{7, 1'600'000, 50}}, 200'000), UnorderedElementsAre(Pair(7, 100'000'000)));
  // Nor did anybody, for two looks.
  EXPECT_THAT(meter.add({}, 200'000), UnorderedElementsAre());
  EXPECT_THAT(meter.add({}, 200'000), UnorderedElementsAre());
  EXPECT_THAT(meter.add({{7, 2'200'000, 50}}, 200'000), UnorderedElementsAre(Pair(7, 100'000'000)));
}

TEST(GpuMeter, MeasuresAnewWhereTheTimeOfDayWasSetBack) {
  GpuMeter meter;
  int64_t boot_ms = 1'000;
  EXPECT_FALSE(meter.was_set_back(900'000, boot_ms * 1'000'000));
  meter.add({{7, 900'000'000, 50}});
  boot_ms += 250;
  EXPECT_FALSE(meter.was_set_back(900'251, boot_ms * 1'000'000));
  boot_ms += 250;
  EXPECT_TRUE(meter.was_set_back(840'500, boot_ms * 1'000'000));
  EXPECT_EQ(meter.newest_us(), 0U) << "samples of the new time are newer";
  meter.add({{7, 840'400'000, 50}});
  boot_ms += 250;
  EXPECT_FALSE(meter.was_set_back(840'750, boot_ms * 1'000'000));
  EXPECT_THAT(meter.add({{7, 840'650'000, 100}}), UnorderedElementsAre(Pair(7, 250'000'000)));
}

TEST(GpuMeter, SamplesMayBeFartherApartThanLooks) {
  GpuMeter meter;
  int64_t busy_ns = 0;
  for (uint64_t look = 0; look < 40; ++look) {
    std::vector<GpuSample> samples;
    if (look % 4 == 0) samples.push_back({7, (look + 4) * 250'000, 50});
    for (const auto& [pid, one_ns] : meter.add(samples, 250'000))
      if (look > 0) busy_ns += one_ns;
  }
  EXPECT_EQ(busy_ns, 9 * 500'000'000ll);
}

}  // namespace
}  // namespace tierpilot::agent

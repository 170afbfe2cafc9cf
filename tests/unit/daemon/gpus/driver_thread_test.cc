// A driver that hangs holds up nobody's end.
#include "daemon/agent/gpus/driver_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "daemon/agent/gpus/gpu_poll.h"
#include "daemon/agent/gpus/gpu_reader.h"
#include "daemon/agent/units/gpu_watch.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot::agent {
namespace {

using std::chrono::milliseconds;

// What hangs, and whether it came back.
struct Driver {
  std::promise<void> answers;
  std::shared_future<void> answer = answers.get_future().share();
  std::promise<void> asked;
  std::promise<void> returned;
};

TEST(DriverThread, OneThatComesBackIsWaitedFor) {
  std::atomic<bool> over = false;
  {
    DriverThread thread([&](DriverStop& stop) {
      stop.wait(std::chrono::hours(1));
      over = true;
    });
  }
  EXPECT_TRUE(over);
}

TEST(DriverThread, OneThatDoesNotIsLeftBehindAndTellsNothingMore) {
  const auto driver = std::make_shared<Driver>();
  const auto told = std::make_shared<std::atomic<int>>(0);
  {
    DriverThread thread(
        [driver, told](DriverStop& stop) {
          stop.tell([&] { ++*told; });
          driver->asked.set_value();
          driver->answer.wait();
          stop.tell([&] { ++*told; });
          EXPECT_TRUE(stop.stopped());
          driver->returned.set_value();
        },
        milliseconds(1));
    driver->asked.get_future().wait();
  }
  driver->answers.set_value();
  driver->returned.get_future().wait();
  EXPECT_EQ(*told, 1);
}

TEST(DriverThread, WhatItTellsIsOverWhenItsOwnerHasGone) {
  for (int round = 0; round < 200; ++round) {
    auto owned = std::make_unique<int>(round);
    auto thread = std::make_unique<DriverThread>([&owned, round](DriverStop& stop) {
      while (!stop.stopped()) stop.tell([&] { ASSERT_EQ(*owned, round); });
    });
    thread->stop();
    owned.reset();
  }
}

TEST(DriverThread, IsWoken) {
  std::atomic<bool> asked = false;
  std::promise<void> woken;
  DriverThread thread([&](DriverStop& stop) {
    stop.wait(std::chrono::hours(1), [&] { return asked.load(); });
    woken.set_value();
  });
  asked = true;
  thread.wake();
  woken.get_future().wait();
}

class HangingDriver : public testing::Test {
 protected:
  void SetUp() override {
    tell("gpus", "GPU-a\n");
    ::setenv("FAKE_NVML", driver_.path().c_str(), 1);
  }
  // Threads that were left behind come back before another test changes the environment.
  void TearDown() override {
    std::filesystem::remove(driver_.path() + "/mute");
    while (threads() > before_) std::this_thread::sleep_for(milliseconds(1));
  }
  static ptrdiff_t threads() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  }
  void tell(const std::string& file, const std::string& text) {
    std::ofstream(driver_.path() + "/" + file) << text;
  }
  ScratchDirectory driver_;
  const ptrdiff_t before_ = threads();
};

TEST_F(HangingDriver, ThoseWhoAskItEndAndTellNothingMore) {
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  std::promise<void> read, looked;
  std::atomic<bool> was_read = false, was_looked_at = false;
  std::vector<std::string> warnings;
  auto events = NvmlEvents::open(FAKE_NVML_LIBRARY, warnings);
  ASSERT_TRUE(events) << events.error().message;
  {
    GpuReader reader({.library = FAKE_NVML_LIBRARY, .period_ms = 1}, [&, ended](auto) {
      EXPECT_FALSE(*ended);
      if (!was_read.exchange(true)) read.set_value();
    });
    GpuWatch watch(std::move(*events), {.library = FAKE_NVML_LIBRARY, .wait_ms = 1}, system_clock(),
                   {.post = [ended](std::function<void()>) { EXPECT_FALSE(*ended); },
                    .failed = [](const GpuFault&) {},
                    .changed = [](const std::string&, bool) {}});
    GpuPoll poll({.library = FAKE_NVML_LIBRARY, .gpu = "GPU-a", .mps = {}, .period_ms = 1},
                 system_clock(), [&, ended](const GpuLook&) {
                   EXPECT_FALSE(*ended);
                   if (!was_looked_at.exchange(true)) looked.set_value();
                 });
    read.get_future().wait();
    looked.get_future().wait();
    tell("mute", "");
    std::this_thread::sleep_for(milliseconds(100));  // all have asked since
    reader.stop();
    watch.stop();
    poll.stop();
  }
  *ended = true;
}

}  // namespace
}  // namespace tierpilot::agent

// What a step held at most, whatever was given back meanwhile.
#include "swap/step_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace tierpilot::swap {
namespace {

constexpr int64_t kStepMib = 1 << 20, kTarget = 1000 * kStepMib;

// Holds what it is told to; all that is free goes back at once.
class ToldMemory : public DeviceMemory {
 public:
  int64_t now() const override { return held_; }
  int64_t peak() const override { return peak_; }
  void reset_peak() override { peak_ = held_; }
  void give_back() override { held_ -= std::exchange(free_, 0); }
  void give_back(int64_t) override { give_back(); }

  void take(int64_t bytes) {
    held_ += bytes;
    peak_ = std::max(peak_, held_);
  }
  void free(int64_t bytes) { free_ += bytes; }

 private:
  int64_t held_ = 0, peak_ = 0, free_ = 0;
};

class StepWatchTest : public testing::Test {
 protected:
  // A step whose second interval takes 1,300 MiB more than its 100, and is done with 1,200 of them
  // when room is made for what comes back.
  StepEnd step(bool makes_room) {
    watch_.begin(true);
    memory_.take(100 * kStepMib);
    watch_.event(0, 0);
    memory_.take(1300 * kStepMib);
    memory_.free(1200 * kStepMib);
    if (makes_room) watch_.make_room(kTarget);
    watch_.event(0, 0);
    memory_.free(200 * kStepMib);
    return watch_.end(0, 0);
  }

  ToldMemory memory_;
  StepWatch watch_{memory_};
};

// As the C library where very many small tensors are free.
class SlowMemory final : public ToldMemory {
 public:
  void give_back() override {
    ++given_back;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  int given_back = 0;
};

TEST(StepWatch, LookingTakesHardlyLongerThanComputing) {
  SlowMemory memory;
  StepWatch watch(memory);
  watch.begin(true);
  for (int i = 0; i < 500; ++i) watch.event(0, 0);
  EXPECT_GE(memory.given_back, 2);
  const auto computed_ms = static_cast<int>(watch.computed_ns() / 1'000'000);
  EXPECT_LE(memory.given_back, 8 + computed_ms / 10);
  const auto before = memory.given_back;
  watch.begin(true);
  watch.event(0, 0);
  EXPECT_GT(memory.given_back, before) << "each step has its own";
}

TEST(StepWatch, WhatIsLittleIsNotLookedAtButCounted) {
  SlowMemory memory;
  StepWatch watch(memory);
  watch.set_little(100 * kStepMib);
  watch.begin(true);
  memory.take(60 * kStepMib);
  memory.free(50 * kStepMib);
  watch.event(0, 0);
  memory.take(30 * kStepMib);
  watch.event(0, 0);
  EXPECT_EQ(memory.given_back, 0);
  memory.take(20 * kStepMib);
  watch.event(0, 0);
  EXPECT_EQ(memory.given_back, 1);
  const auto others = watch.end(0, 0).step.other_bytes;
  EXPECT_EQ(others,
            (std::vector<int64_t>{60 * kStepMib, 90 * kStepMib, 110 * kStepMib, 110 * kStepMib}));
}

TEST_F(StepWatchTest, KnowsTheMostOfAnIntervalInWhichMemoryWasGivenBack) {
  step(false);
  const auto plain = step(false);
  ASSERT_EQ(plain.peak_bytes, 1400 * kStepMib);
  const auto seen = step(true);
  EXPECT_EQ(seen.peak_bytes, plain.peak_bytes);
  EXPECT_EQ(seen.step.other_bytes, plain.step.other_bytes);
}

TEST_F(StepWatchTest, GivesBackWhereTheNextIntervalMightNotFitAlsoWhileItObserves) {
  step(false);
  EXPECT_EQ(watch_.given_back(), 0);
  step(true);
  EXPECT_GT(watch_.given_back(), 0);
}

}  // namespace
}  // namespace tierpilot::swap

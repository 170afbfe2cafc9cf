// What a step held at most, whatever was given back meanwhile.
#include "swap/step_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace tierpilot::swap {
namespace {

constexpr int64_t kMib = 1 << 20, kTarget = 1000 * kMib;

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
    memory_.take(100 * kMib);
    watch_.event(0, 0);
    memory_.take(1300 * kMib);
    memory_.free(1200 * kMib);
    if (makes_room) watch_.make_room(kTarget);
    watch_.event(0, 0);
    memory_.free(200 * kMib);
    return watch_.end(0, 0);
  }

  ToldMemory memory_;
  StepWatch watch_{memory_};
};

TEST_F(StepWatchTest, KnowsTheMostOfAnIntervalInWhichMemoryWasGivenBack) {
  step(false);
  const auto plain = step(false);
  ASSERT_EQ(plain.peak_bytes, 1400 * kMib);
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

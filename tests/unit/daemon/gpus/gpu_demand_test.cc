// How much of a GPU programs want, of what samples tell.
#include "daemon/agent/gpus/gpu_demand.h"

#include <gtest/gtest.h>

namespace tierpilot::agent {
namespace {

constexpr int64_t kMs = 1'000'000;

// Looked at each 250 ms: the parts of the time in which it ran and, of that, it and others used the
// GPU, and how many others ran.
void tell(GpuDemand& demand, int ms, double used, double others = 0, double ran = 1,
          double running = 1) {
  for (int told_ms = 0; told_ms < ms; told_ms += 250) {
    const double ran_ns = ran * 250 * kMs;
    const auto part = [&](double of) { return static_cast<int64_t>(of * ran_ns); };
    demand.add({part(1), part(used)}, {part(running), part(others)});
  }
}

TEST(GpuDemand, ANewOneSaturatesUntilASecondWasMeasured) {
  GpuDemand demand;
  EXPECT_TRUE(demand.saturates());
  tell(demand, 1'000, 0.3);
  EXPECT_TRUE(demand.saturates());
  tell(demand, 500, 0.3);
  EXPECT_FALSE(demand.saturates());
}

TEST(GpuDemand, OnlyTheTimeInWhichItMightRunCounts) {
  GpuDemand demand;
  tell(demand, 10'000, 0.9, 0, 0.3);
  EXPECT_TRUE(demand.saturates());
  tell(demand, 20'000, 0.3, 0, 0.3);
  EXPECT_FALSE(demand.saturates());
}

TEST(GpuDemand, WhoNeverComputesDoesNotSaturate) {
  GpuDemand demand;
  tell(demand, 5'000, 0);
  EXPECT_FALSE(demand.saturates());
  EXPECT_EQ(demand.turns_milli(1), 1000u);
}

TEST(GpuDemand, SamplesMayComeInLumps) {
  for (const double used : {0.3, 0.9}) {
    GpuDemand demand;
    for (int seconds = 0; seconds < 30; ++seconds) {
      for (int looks = 0; looks < 3; ++looks) demand.add({250 * kMs, 0}, {});
      demand.add({250 * kMs, static_cast<int64_t>(used * 1000 * kMs)}, {});
      EXPECT_EQ(demand.saturates(), used > 0.5 || seconds < 1) << seconds;
    }
    EXPECT_EQ(demand.turns_milli(300), used > 0.5 ? 333u : 1000u);
  }
}

TEST(GpuDemand, BetweenTheTwoBoundsItStaysWhatItIs) {
  GpuDemand demand;
  tell(demand, 20'000, 0.55);
  EXPECT_TRUE(demand.saturates());
  tell(demand, 5'000, 0.4);
  EXPECT_FALSE(demand.saturates());
  tell(demand, 20'000, 0.6);
  EXPECT_FALSE(demand.saturates());
  tell(demand, 5'000, 0.8);
  EXPECT_TRUE(demand.saturates());
}

TEST(GpuDemand, OthersBesideASaturatingOneDoNotHideIt) {
  GpuDemand demand;
  tell(demand, 20'000, 0.77, 0.23);
  EXPECT_TRUE(demand.saturates());
  tell(demand, 20'000, 0.4, 0.6);
  EXPECT_TRUE(demand.saturates());
}

TEST(GpuDemand, WhoWaitsForASaturatingOneDoesNotSaturate) {
  GpuDemand demand;
  tell(demand, 20'000, 0.23, 0.77);
  EXPECT_FALSE(demand.saturates());
}

TEST(GpuDemand, SeveralThatSaturateItBesideEachOtherAreFoundOut) {
  GpuDemand demand;
  tell(demand, 5'000, 0.2, 0, 1, 3);
  EXPECT_FALSE(demand.saturates());
  tell(demand, 10'000, 0.25, 0.75, 1, 3);
  EXPECT_TRUE(demand.saturates());
}

TEST(GpuDemand, ItsTurnsAreSuchThatItUsesItsShare) {
  GpuDemand demand;
  tell(demand, 20'000, 0.4);
  EXPECT_NEAR(demand.turns_milli(200), 500, 1);
  EXPECT_EQ(demand.turns_milli(400), 1000u);
  EXPECT_EQ(demand.turns_milli(385), 1000u) << "a twentieth too much";
  EXPECT_LT(demand.turns_milli(370), 1000u);
  EXPECT_EQ(demand.turns_milli(0), 1u);
}

// One of whom it is wrong stands still meanwhile.
TEST(GpuDemand, AGuessThatWasWrongIsMadeEverMoreSeldom) {
  GpuDemand demand;
  int wrong_ms = 0, guesses = 0;
  for (int ms = 0; ms < 300'000; ms += 250) {
    const bool saturated = demand.saturates();
    tell(demand, 250, 0.45, saturated ? 0 : 0.5);
    wrong_ms += saturated ? 250 : 0;
    guesses += !saturated && demand.saturates();
  }
  EXPECT_GE(guesses, 2);
  EXPECT_LE(guesses, 10);
  EXPECT_LE(wrong_ms, 20'000);
}

}  // namespace
}  // namespace tierpilot::agent

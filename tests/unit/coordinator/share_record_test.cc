#include "coordinator/core/sharing/share_record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "coordinator/core/sharing/share_forecasts.h"

namespace tierpilot {
namespace {

ShareForecast forecast(uint32_t milli, double run_s = 0) {
  return {{.milli = milli, .memory_bytes = 0, .run_s = run_s, .run_upper_s = run_s * 1.5},
          "a test"};
}

// Of a job that computes `busy_s` of CPU time and waits `waited_s` for a CPU until `at_s`.
JobPoint used(double busy_s, double waited_s) {
  JobPoint point;
  point.cpu_ns = static_cast<uint64_t>(busy_s * 1e9);
  point.waited_ns = static_cast<uint64_t>(waited_s * 1e9);
  return point;
}

JobPoint iteration(uint64_t number, uint64_t of) {
  JobPoint point;
  point.iteration = number;
  point.iterations = of;
  return point;
}

TEST(ShareRecord, NeedsAsMuchAsIsUsedWhenNothingHoldsItBack) {
  ShareRecord record(forecast(900));
  record.started(100, 900);
  for (int s = 1; s <= 20; ++s) record.add(100 + s, used(0.3 * s, 0), 1);
  ASSERT_TRUE(record.used_milli());
  EXPECT_NEAR(*record.used_milli(), 300, 10);
  EXPECT_NEAR(record.need_milli(), 315, 30);
}

// What it is to have is no use: who says nothing is taken for a whole unit.
TEST(ShareRecord, UseIsNotKnownBeforeItIsForetoldOrMeasured) {
  ShareRecord record(forecast(900));
  record.started(100, 900);
  EXPECT_EQ(record.use_milli(), 0);
  auto foretold = forecast(900);
  foretold.use_milli = 700;
  record.foretold(foretold);
  EXPECT_EQ(record.use_milli(), 700);
  for (int s = 1; s <= 20; ++s) {
    record.add(100 + s, used(0.3 * s, 0), 1);
    record.add(100 + s, iteration(static_cast<uint64_t>(s) * 10, 1000), 1);
  }
  EXPECT_NEAR(record.use_milli(), 300, 30) << "without a margin";
}

TEST(ShareRecord, AnIterationIsMeasuredAsIfNothingHeldItBack) {
  ShareRecord record(forecast(1000));
  record.started(100, 500);
  EXPECT_FALSE(record.step_s());
  record.beside(100, 0.5);
  for (int s = 1; s <= 20; ++s)
    record.add(100 + s, iteration(static_cast<uint64_t>(s) * 5, 1000), 1);
  EXPECT_NEAR(record.left_s(120) / 900, 0.05, 0.005)
      << "a fifth of a second at a quarter of its speed";
  ASSERT_TRUE(record.step_s());
  EXPECT_NEAR(*record.step_s(), 0.2, 0.02) << "as it is now";
}

// It slept: its share, however small, held nothing back.
TEST(ShareRecord, WhoUsesNextToNothingWorksAsFastAsAlone) {
  for (const uint32_t milli : {1, 5, 300}) {
    ShareRecord record(forecast(1000));
    record.started(100, milli);
    for (int s = 1; s <= 8; ++s) record.add(100 + s, used(0.0001 * s, 0), 1);
    EXPECT_NEAR(record.worked_s(108), 8, 0.5) << milli;
  }
}

TEST(ShareRecord, WhatItWorkedBeforeItsUseWasSeenIsReckonedByThat) {
  ShareRecord record(forecast(1000));
  record.started(100, 500);
  record.given(101, 200);
  record.given(102, 100);
  record.given(103, 150);
  for (int s = 4; s <= 8; ++s) record.add(100 + s, used(0.02 * s, 0), 1);
  EXPECT_NEAR(record.worked_s(108), 8, 0.5);
}

// Else what is thought of its neighbours, and with it its own pace, would be another one each time.
TEST(ShareRecord, SmallChangesOfUseAreNotTold) {
  ShareRecord record(forecast(900));
  record.started(100, 900);
  double busy_s = 0;
  std::set<double> uses;
  for (int s = 1; s <= 60; ++s) {
    record.add(100 + s, used(busy_s += 0.3 + 0.02 * (s % 2), 0), 1);
    if (s >= 3) uses.insert(record.use_milli());
  }
  EXPECT_EQ(uses.size(), 1U);
}

// One that would use two thirds of the unit and has a tenth: what it used says little.
TEST(ShareRecord, WaitingForItsShareIsNoIdleness) {
  ShareRecord record(forecast(500));
  record.started(100, 100);
  for (int s = 1; s <= 20; ++s) record.add(100 + s, used(0.1 * s, 0.85 * s), 1);
  EXPECT_NEAR(*record.used_milli(), 100, 5);
  EXPECT_NEAR(record.need_milli(), 700, 60);
}

// A program that has loaded its data computes: it does not creep back to what it had.
TEST(ShareRecord, WhoIsHeldBackGetsWhatItWantsAtOnce) {
  ShareRecord record(forecast(600));
  record.started(100, 600);
  for (int s = 1; s <= 10; ++s) record.add(100 + s, used(0.001 * s, 0), 1);
  EXPECT_EQ(record.need_milli(), 10u);
  record.given(110, 10);
  record.add(111, used(0.01, 0), 1);
  record.add(112, used(0.02, 0.97), 1);  // little else than waiting
  EXPECT_GT(record.need_milli(), 300u);
}

TEST(ShareRecord, WhoOutlastsWhatItWasThoughtToTakeMayTakeAsLongAgain) {
  ShareRecord record(forecast(800, 10));
  record.started(100, 800);
  EXPECT_DOUBLE_EQ(record.left_upper_s(114), 1) << "within what it may take";
  EXPECT_GE(record.left_upper_s(140), 35);
}

TEST(ShareRecord, SeveralThreadsThatAreAlwaysReadyNeedAllOfIt) {
  ShareRecord record(forecast(100));
  record.started(100, 100);
  for (int s = 1; s <= 20; ++s) record.add(100 + s, used(0.1 * s, 3.9 * s), 1);
  EXPECT_EQ(record.need_milli(), 1000u);
}

TEST(ShareRecord, WithoutIterationsTheForecastIsWorkedOff) {
  ShareRecord record(forecast(800, 60));
  record.started(100, 400);
  EXPECT_DOUBLE_EQ(record.left_s(100), 60);
  EXPECT_DOUBLE_EQ(record.left_s(120), 50) << "twenty seconds at half speed";
  record.given(120, 800);
  EXPECT_DOUBLE_EQ(record.left_s(130), 40);
  EXPECT_DOUBLE_EQ(record.left_upper_s(130), 70);
  EXPECT_GT(record.left_s(500), 0) << "it still runs";
}

TEST(ShareRecord, IterationsTellMoreThanTheForecast) {
  ShareRecord record(forecast(1000, 10));
  record.started(100, 500);
  for (int s = 1; s <= 10; ++s)
    record.add(100 + s, iteration(static_cast<uint64_t>(s) * 5, 1000), 1);
  // Five a second at half speed, so ten a second, and 950 to go.
  EXPECT_NEAR(record.left_s(110), 95, 5);
}

// Nothing left would mean that nobody knows.
TEST(ShareRecord, WhoHasDoneItsLastIterationIsAsGoodAsDone) {
  ShareRecord record(forecast(1000, 10));
  record.started(100, 1000);
  for (int s = 1; s <= 10; ++s)
    record.add(100 + s, iteration(static_cast<uint64_t>(s) * 10, 100), 1);
  for (const double now_s : {110, 120}) {
    EXPECT_GT(record.left_s(now_s), 0);
    EXPECT_LT(record.left_upper_s(now_s), 1);
  }
}

TEST(ShareRecord, NeighboursSlowWhatIsWorkedOff) {
  ShareRecord record(forecast(800, 60));
  record.started(100, 800);
  record.beside(110, 0.5);
  EXPECT_DOUBLE_EQ(record.left_s(110), 50);
  EXPECT_DOUBLE_EQ(record.left_s(120), 45) << "ten seconds at half speed";
  record.beside(120, 1);
  EXPECT_DOUBLE_EQ(record.left_s(130), 35);
}

// Ten iterations a second beside others that leave it half: a hundred are done in five seconds
// alone, and in ten beside them.
TEST(ShareRecord, APaceBesideOthersIsFasterAlone) {
  ShareRecord record(forecast(1000, 10));
  record.started(100, 1000);
  record.beside(100, 0.5);
  for (int s = 1; s <= 10; ++s)
    record.add(100 + s, iteration(static_cast<uint64_t>(s) * 10, 200), 1);
  EXPECT_NEAR(record.left_s(110), 5, 0.5);
  EXPECT_EQ(record.kept(), 0.5);
}

// Predicted to start for 4 s on all of a unit, and then to train for 20 s on 300 thousandths.
ShareForecast training() {
  return {{.milli = 300, .memory_bytes = 0, .run_s = 24, .run_upper_s = 36, .start_s = 4},
          "a test",
          true};
}

TEST(ShareRecord, AStartCanUseAllOfTheUnit) {
  ShareRecord record(training());
  record.started(100, 250);
  EXPECT_DOUBLE_EQ(record.start_left_s(100), 4);
  EXPECT_DOUBLE_EQ(record.left_s(100), 24);
  EXPECT_DOUBLE_EQ(record.start_left_s(108), 2) << "eight seconds with a quarter of the unit";
  EXPECT_DOUBLE_EQ(record.left_s(108), 22);
  EXPECT_DOUBLE_EQ(record.left_upper_s(108), 34);
  EXPECT_GT(record.start_left_s(150), 0) << "it still starts";
}

TEST(ShareRecord, AStartEndsWithTheFirstIteration) {
  ShareRecord record(training());
  record.started(100, 500);
  for (int s = 1; s <= 12; ++s) record.add(100 + s, used(0.5 * s, 0.5 * s), 1);
  EXPECT_EQ(record.need_milli(), 300u) << "what it loads with says nothing of what follows";
  EXPECT_FALSE(record.start_s());
  record.add(112, iteration(1, 100), 1);
  ASSERT_TRUE(record.start_s());
  EXPECT_DOUBLE_EQ(*record.start_s(), 6) << "twelve seconds with half of the unit";
  EXPECT_EQ(record.start_left_s(112), 0);
  EXPECT_DOUBLE_EQ(record.left_s(112), 20);
  EXPECT_DOUBLE_EQ(record.left_upper_s(112), 32);
}

TEST(ShareRecord, WhoNeverTellsIterationsDoesNotStartForEver) {
  ShareRecord record(training());
  record.started(100, 1000);
  for (int s = 1; s <= 80; ++s) record.add(100 + s, used(0.6 * s, 0), 1);
  EXPECT_EQ(record.start_left_s(180), 0);
  EXPECT_NEAR(record.need_milli(), 630, 30);
}

TEST(ShareRecord, AStartIsLearnedAlsoWhereNoneWasForetold) {
  ShareRecord record(forecast(1000, 30));
  record.started(100, 1000);
  for (int s = 1; s <= 5; ++s) record.add(100 + s, used(0.95 * s, 0), 1);
  record.add(105, iteration(1, 100), 1);
  ASSERT_TRUE(record.start_s());
  EXPECT_NEAR(*record.start_s(), 5, 0.5);
  // What follows uses less, and is not mixed with what was loaded.
  for (int s = 1; s <= 4; ++s) {
    record.add(105 + s, iteration(1 + static_cast<uint64_t>(s), 100), 1);
    record.add(105 + s, used(4.75 + 0.2 * s, 0), 1);
  }
  EXPECT_NEAR(record.need_milli(), 210, 10);
}

TEST(ShareRecord, NothingIsKnownWithoutAForecast) {
  ShareRecord record(forecast(1000));
  record.started(100, 1000);
  EXPECT_EQ(record.left_s(150), 0);
  EXPECT_EQ(record.left_upper_s(150), 0);
}

}  // namespace
}  // namespace tierpilot

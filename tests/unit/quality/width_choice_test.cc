#include "policies/quality/width_choice.h"
#include "tests/unit/quality/halving.h"

#include <gtest/gtest.h>

namespace tierpilot::quality {
namespace {

// Two ranks of a core each; an iteration is a second of one core.
JobState job_of(const Predictor& predictor, double iterations,
                const Throughput* throughput = nullptr) {
  return {.cores = 2,
          .iterations = iterations,
          .one_core_s = 1,
          .largest_change = 1,
          .reports = 100,
          .throughput = throughput,
          .predictor = &predictor};
}

// `serial`: of its work.
Throughput measured(double serial) {
  Throughput throughput;
  for (int i = 0; i < 20; ++i)
    for (const double cores : {1.0, 2.0, 4.0}) throughput.add(cores, amdahl_speed(cores, serial));
  return throughput;
}

TEST(WidthChoice, AJobWithMuchToLearnBeginsAgainWider) {
  const Halving slow(5000);
  const auto parallel = measured(0.01);
  const auto choice = choose_width(job_of(slow, 0, &parallel), 2, 8, 10);
  EXPECT_EQ(choice.ranks, 8u);
  EXPECT_GT(choice.gain, 2 * choice.gain_as_now);
}

TEST(WidthChoice, ARestartThatTakesTooLongDoesNotPay) {
  const Halving slow(5000);
  const auto parallel = measured(0.01);
  const auto state = job_of(slow, 0, &parallel);
  EXPECT_EQ(choose_width(state, 2, 3, 250).ranks, 2u);
  EXPECT_EQ(choose_width(state, 2, 3, 10).ranks, 3u);
  EXPECT_EQ(choose_width(state, 2, 8, 700).ranks, 2u) << "longer than anybody looks ahead";
}

TEST(WidthChoice, AJobThatIsNearlyDoneGoesOnAsItIs) {
  const Halving fast(50);
  const auto parallel = measured(0.01);
  EXPECT_EQ(choose_width(job_of(fast, 0, &parallel), 2, 8, 10).ranks, 2u)
      << "it gets there within the time without";
}

TEST(WidthChoice, ManyTimesNothingIsNothing) {
  const Halving fast(50);
  EXPECT_EQ(choose_width(job_of(fast, 600), 2, 8, 1, {.horizon_s = 10}).ranks, 2u);
}

TEST(WidthChoice, TakesNoRanksThatBringNothing) {
  const Halving slow(5000);
  const auto serial = measured(0.5);
  EXPECT_EQ(choose_width(job_of(slow, 0, &serial), 2, 64, 1, {.worth_it = 1.5}).ranks, 2u);
  const auto some = measured(0.2);
  EXPECT_LT(choose_width(job_of(slow, 0, &some), 2, 1000, 1).ranks, 500u);
}

TEST(WidthChoice, WhatCannotBeForetoldGoesOnAsItIs) {
  const Halving slow(5000);
  auto state = job_of(slow, 0);
  state.predictor = nullptr;
  EXPECT_EQ(choose_width(state, 2, 8, 10).ranks, 2u);
  state = job_of(slow, 0);
  state.one_core_s = 0;
  EXPECT_EQ(choose_width(state, 2, 8, 10).ranks, 2u);
  EXPECT_EQ(choose_width(job_of(slow, 0), 2, 2, 10).ranks, 2u) << "no room";
  EXPECT_EQ(choose_width(job_of(slow, 0), 2, 1, 10).ranks, 2u);
}

}  // namespace
}  // namespace tierpilot::quality

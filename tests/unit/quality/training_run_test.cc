#include "policies/sim/quality/training_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "policies/sim/quality/family_curves.h"
#include "policies/sim/quality/quality_suite.h"

namespace tierpilot::sim {
namespace {

LossCurve halving() {
  LossCurve curve{.run = "r", .family = "f", .points = {}, .seconds = {}};
  for (int k = 1; k <= 101; ++k) curve.points.push_back({double(k), std::exp2(-k / 10.0)});
  return curve;
}

TrainingCell small_cell() {
  return {.name = "small", .cores = 4, .jobs = 6, .mean_gap_s = 5, .window_s = 200};
}

TEST(TrueCurve, WhatIsLeftGoesFromOneToNothing) {
  const auto curve = TrueCurve::of(halving());
  ASSERT_TRUE(curve);
  EXPECT_DOUBLE_EQ(curve->left_at(0), 1);
  EXPECT_NEAR(curve->left_at(10), 0.5, 0.01);
  EXPECT_DOUBLE_EQ(curve->left_at(1e9), 0);
}

TEST(TrueCurve, RunsThatSayNothingAreNone) {
  auto rising = halving();
  for (auto& point : rising.points) point.loss = 3 - point.loss;
  EXPECT_FALSE(TrueCurve::of(rising));
  auto diverged = halving();
  for (auto& point : diverged.points) point.loss = NAN;
  EXPECT_FALSE(TrueCurve::of(diverged));
}

TEST(TrainingRun, EveryJobEndsUnderEveryAllocatorAndLevelsAreReachedInOrder) {
  const auto world = draw_world(small_cell(), {halving()}, 3);
  ASSERT_TRUE(world);
  for (const char* name : {"fair", "fair-weighted", "quality-published", "quality", "srtf",
                           "max-throughput", "clairvoyant"}) {
    const auto result = run_training(*world, name);
    ASSERT_TRUE(result) << name;
    for (const auto& job : result->jobs) {
      EXPECT_GT(job.reached_s[0], 0) << name;
      EXPECT_LE(job.reached_s[0], job.reached_s[1]) << name;
      EXPECT_LE(job.reached_s[2], job.completion_s) << name;
    }
    EXPECT_GT(result->mean_loss, 0) << name;
    EXPECT_LT(result->mean_loss, 1) << name;
    EXPECT_LE(result->utilisation, 1 + 1e-9) << name;
    const auto& groups = result->group_shares;
    EXPECT_NEAR(std::accumulate(groups.begin(), groups.end(), 0.0), 1, 1e-6) << name;
  }
  EXPECT_FALSE(run_training(*world, "nobody"));
}

TEST(TrainingWorld, JobsComeInTheRhythmOfATraceAsFastAsTheCellSays) {
  auto cell = small_cell();
  const std::vector<double> trace_s{0, 0, 0, 100, 100, 100, 1000};
  cell.jobs = 6;
  cell.mean_gap_s = 10;
  const auto world = draw_world(cell, {halving()}, 1, trace_s);
  ASSERT_TRUE(world) << world.error().message;
  std::vector<double> arrivals_s;
  for (const auto& job : world->jobs) arrivals_s.push_back(job.arrival_s);
  EXPECT_EQ(arrivals_s, (std::vector<double>{0, 0, 6, 6, 6, 60}));
  const auto poisson = draw_world(cell, {halving()}, 1);
  EXPECT_EQ(poisson->jobs[0].one_core_s, world->jobs[0].one_core_s) << "the jobs are the same";
  cell.jobs = 7;
  EXPECT_FALSE(draw_world(cell, {halving()}, 1, trace_s)) << "too few";
}

TEST(TrainingRun, AJobAloneTakesWhatItsWorkTakes) {
  auto cell = small_cell();
  cell.jobs = 1;
  cell.max_cores = 1;
  cell.least_work_s = cell.most_work_s = 100;
  const auto result = run_training(*draw_world(cell, {halving()}, 1), "fair");
  // 1 % of the loss is left after 66 of 100 iterations of a second each; a step lasts two.
  EXPECT_NEAR(result->jobs[0].completion_s, 66, 4);
}

// Else it would count as done at once.
TEST(TrainingRun, JobsThatNeverEndAreAnError) {
  auto cell = small_cell();
  cell.least_work_s = cell.most_work_s = 1e9;
  const auto result = run_training(*draw_world(cell, {halving()}, 1), "fair");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("have not ended"), std::string::npos);
}

TEST(TrainingRun, JobsMayComeAsLateAsTheyLike) {
  auto cell = small_cell();
  cell.jobs = 2;
  cell.mean_gap_s = 3e7;
  cell.period_s = 1e5;
  const auto result = run_training(*draw_world(cell, {halving()}, 1), "fair");
  ASSERT_TRUE(result) << result.error().message;
  for (const auto& job : result->jobs) EXPECT_GT(job.completion_s, 0);
}

TEST(QualitySuite, GivesTheSameBytesForAnyNumberOfThreads) {
  QualityOptions options{.curves = family_curves(5, 1),
                         .cells = {small_cell()},
                         .allocators = {"quality"},
                         .seeds = 2};
  const auto one = evaluate_quality(options);
  options.threads = 3;
  const auto three = evaluate_quality(options);
  ASSERT_TRUE(one && three);
  EXPECT_EQ(one->dump(), three->dump());
}

TEST(QualitySuite, PredictedQualityBeatsEqualShares) {
  QualityOptions options{.curves = family_curves(5, 2),
                         .cells = {small_cell()},
                         .allocators = {"quality"},
                         .seeds = 3};
  options.cells[0].jobs = 20;
  const auto value = evaluate_quality(options);
  ASSERT_TRUE(value);
  for (const auto& row : (*value)["cells"])
    if (row["policy"] != "fair")
      EXPECT_LT(row["loss_beside_fair"].get<double>(), 1) << row["policy"];
}

TEST(QualitySuite, WithoutAUsableCurveItSaysSo) {
  auto rising = halving();
  for (auto& point : rising.points) point.loss = -point.loss;
  const auto value = evaluate_quality(
      {.curves = {rising}, .cells = {small_cell()}, .allocators = {"fair"}, .seeds = 1});
  ASSERT_FALSE(value);
  EXPECT_NE(value.error().message.find("curve"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::sim

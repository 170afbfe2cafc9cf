#include <gtest/gtest.h>

#include <cmath>

#include "policies/sim/plot/chart.h"

namespace tierpilot::sim::plot {
namespace {

TEST(Distribution, RisesToOneAtTheLargest) {
  const auto series = distribution("d", {3, 1, NAN, 1, 2, INFINITY});
  ASSERT_EQ(series.points.size(), 4u);
  EXPECT_EQ(series.points[0].y, 0);
  EXPECT_EQ(series.points[1].x, 1);
  EXPECT_EQ(series.points[1].y, 0.5);
  EXPECT_EQ(series.points[2].y, 0.75);
  EXPECT_EQ(series.points[3].x, 3);
  EXPECT_EQ(series.points[3].y, 1);
  EXPECT_TRUE(distribution("none", {}).points.empty());
}

TEST(MeanAndRange, IsOverTheRunsThatReachThere) {
  const auto series = mean_and_range("m", {{{0, 1}, {1, 2}, {2, 3}}, {{0, 3}, {2, 7}}, {{1, 0}}});
  ASSERT_EQ(series.points.size(), 3u);
  EXPECT_EQ(series.points[0].y, 2);
  EXPECT_DOUBLE_EQ(series.points[1].y, (2 + 5 + 0) / 3.0) << "the second is 5 between its points";
  EXPECT_EQ(series.points[2].y, 5);
  ASSERT_EQ(series.band.size(), 3u);
  EXPECT_EQ(series.band[1].low, 0);
  EXPECT_EQ(series.band[1].high, 5);
  EXPECT_TRUE(mean_and_range("none", {}).points.empty());
}

TEST(MeanAndRange, StepsHoldTheirValue) {
  const auto series = mean_and_range("m", {{{0, 1}, {1, 1}}, {{0, 3}, {2, 7}}}, true);
  EXPECT_EQ(series.points[1].y, 2);
  EXPECT_TRUE(series.steps);
}

TEST(MeanAndRange, ASingleRunHasNoBand) {
  EXPECT_TRUE(mean_and_range("m", {{{0, 1}, {1, 2}}}).band.empty());
  const auto with_gap = mean_and_range("m", {{{0, 1}, {1, NAN}}});
  EXPECT_TRUE(std::isnan(with_gap.points[1].y));
}

}  // namespace
}  // namespace tierpilot::sim::plot

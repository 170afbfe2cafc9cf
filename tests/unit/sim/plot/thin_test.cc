#include "policies/sim/plot/thin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tierpilot::sim::plot {
namespace {

TEST(ThinLine, KeepsFirstLowestHighestAndLastOfAColumn) {
  std::vector<Point> points;
  for (int i = 0; i < 1000; ++i) points.push_back({5 + i / 1000.0, 50});
  points[300].y = 90;
  points[700].y = 10;
  const auto thin = thin_line(points);
  ASSERT_EQ(thin.size(), 4u);
  EXPECT_EQ(thin[0].x, points.front().x);
  EXPECT_EQ(thin[1].y, 90);
  EXPECT_EQ(thin[2].y, 10);
  EXPECT_EQ(thin[3].x, points.back().x);
}

TEST(ThinLine, IsBoundedWhateverTheGaps) {
  std::vector<Point> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({i * 0.001, i % 2 ? NAN : i * 1.0});
  EXPECT_LE(thin_line(points).size(), 400u);
  for (auto& point : points) point.y = NAN;
  EXPECT_TRUE(thin_line(points).empty());
}

TEST(ThinLine, FewPointsAreKeptAsTheyAre) {
  const std::vector<Point> points{{0, 1}, {10, 2}, {20, NAN}, {30, 4}};
  const auto thin = thin_line(points);
  ASSERT_EQ(thin.size(), 4u);
  EXPECT_TRUE(std::isnan(thin[2].y));
}

TEST(ThinBand, KeepsTheOutermostOfAColumn) {
  const auto thin = thin_band({{0.1, 5, 6}, {0.5, 4, 9}, {0.9, NAN, 100}, {3, 1, 2}});
  ASSERT_EQ(thin.size(), 2u);
  EXPECT_EQ(thin[0].low, 4);
  EXPECT_EQ(thin[0].high, 9);
}

}  // namespace
}  // namespace tierpilot::sim::plot

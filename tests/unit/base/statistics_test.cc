#include "base/statistics.h"

#include <gtest/gtest.h>

#include <array>

namespace tierpilot {
namespace {

TEST(Statistics, MedianIsTheMeanOfTheTwoMiddles) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({3, 1, 100}), 3);
  EXPECT_EQ(median({4, 2}), 3);
  EXPECT_EQ(median({9, 1, 5, 2}), 3.5);
}

TEST(Statistics, UpperMedianIsTheUpperOfTheTwoMiddles) {
  EXPECT_EQ(upper_median({}), 0);
  EXPECT_EQ(upper_median({7}), 7);
  EXPECT_EQ(upper_median({3, 1, 100}), 3);
  EXPECT_EQ(upper_median({4, 2}), 4);
  EXPECT_EQ(upper_median({9, 1, 5, 2}), 5);
  std::array values{9.0, 1.0, 5.0, 2.0};
  EXPECT_EQ(upper_median_in_place(values), 5);
  EXPECT_EQ(upper_median_in_place(std::span(values).first(0)), 0);
}

TEST(Statistics, QuantileIsTheNearestValue) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({7}, 0.9), 7);
  EXPECT_EQ(quantile({4, 2}, 0.5), 4);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0), 1);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.5), 3);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.6), 3);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.9), 5);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 1), 5);
}

}  // namespace
}  // namespace tierpilot

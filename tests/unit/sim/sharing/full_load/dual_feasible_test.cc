#include "policies/sim/sharing/full_load/dual_feasible.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tierpilot::sharing {
namespace {

// Of all ways to fill a unit, by what shares of it can be together.
double most_on_a_unit(const DualFeasible& function) {
  std::array<double, kWholeUnit + 1> most{};
  for (uint32_t all = 1; all <= kWholeUnit; ++all)
    for (uint32_t one = 1; one <= all; ++one)
      most[all] = std::max(most[all], most[all - one] + function[one]);
  return most[kWholeUnit];
}

TEST(DualFeasible, WhateverFitsOnAUnitTakesNoMoreThanIt) {
  EXPECT_NEAR(most_on_a_unit(as_asked()), 1, 1e-9);
  for (uint32_t step = 1; step <= kWholeUnit / 2; step += step < 10 ? 1 : 7) {
    EXPECT_NEAR(most_on_a_unit(cut_off(step)), 1, 1e-9) << step;
    EXPECT_NEAR(most_on_a_unit(in_steps(step)), 1, 1e-9) << step;
  }
  EXPECT_NEAR(most_on_a_unit(in_steps(kWholeUnit / 2)), 1, 1e-9);
}

TEST(DualFeasible, SharesAboveAHalfHaveAUnitEach) {
  const auto most = most_taken({{510, 7}, {900, 2}});
  EXPECT_DOUBLE_EQ(most.units, 9);
  EXPECT_DOUBLE_EQ(most.function[kWholeUnit], 1);
}

TEST(DualFeasible, GapsThatNobodyFillsAreTaken) {
  EXPECT_DOUBLE_EQ(most_taken({{400, 4}}).units, 2) << "two on a unit";
  EXPECT_DOUBLE_EQ(most_taken({{260, 6}}).units, 2) << "three on a unit";
  EXPECT_DOUBLE_EQ(most_taken({{810, 3}, {200, 3}}).units, 3.6);
  EXPECT_DOUBLE_EQ(most_taken({{500, 3}, {250, 2}}).units, 2) << "no gaps";
}

}  // namespace
}  // namespace tierpilot::sharing

// Medians and quantiles of values in any order. The two medians differ where the count is even.
#pragma once

#include <span>
#include <vector>

namespace tierpilot {

// The standard deviation of a normal distribution, in medians of absolute deviations (MAD).
constexpr double kDeviationOfMad = 1.4826;

// The mean of the two middle values; 0 of nothing.
double median(std::vector<double> values);
// The upper of the two middle values; 0 of nothing.
double upper_median(std::vector<double> values);
// Reorders the values: for where an allocation is too much.
double upper_median_in_place(std::span<double> values);
// The value nearest to the share of the way from the smallest (0) to the largest (1), the upper of
// two that are as near; 0 of nothing.
double quantile(std::vector<double> values, double share);

}  // namespace tierpilot

// What a change costs, from runs in pairs: with it and without it, one right after the other.
#pragma once

#include <functional>
#include <vector>

namespace tierpilot {

// Work done per second by one run; below zero: the run failed.
using Run = std::function<double()>;

struct Comparison {
  std::vector<double> off, on;       // throughputs, pair by pair
  std::vector<double> cost_percent;  // of each pair: how much less was done with it on
};

// Which of a pair comes first changes from pair to pair, so that drift hits both alike. Empty when
// a run failed.
Comparison compare(size_t pairs, const Run& off, const Run& on);

double interpolated_quantile(std::vector<double> values, double q);

// Bounds between which the median lies with a probability of 95 %, whatever the distribution: order
// statistics by the binomial law (Conover, Practical Nonparametric Statistics, 3.2).
struct Interval {
  double low, high;
};
Interval median_interval(std::vector<double> values);

}  // namespace tierpilot

// How many failures a unit will have, as a distribution, and how good a set of such forecasts was.
#pragma once

#include <cstdint>
#include <vector>

namespace tierpilot::gang {

// Negative binomial: Poisson whose rate is Gamma-distributed with `shape`.
struct CountForecast {
  double mean = 0;
  double shape = 1;

  double log_probability(uint64_t count) const;
  double at_most(int64_t count) const;  // probability; 0 below 0
  uint64_t quantile(
      double share) const;  // the least count that is at most so probable to be exceeded
};

// The part of the probability of `count` that lies within the central `share` of the forecast.
// Counts are whole, so an interval of whole counts covers more than it promises; the mean of this
// over units is the promised share when the forecasts are right (Czado, Gneiting, Held: "Predictive
// model assessment for count data", Biometrics 65, 2009).
double covered_share(const CountForecast& forecast, uint64_t count, double share);

// The probability that a unit that fails is ranked above one that does not; equal scores count
// half. 0.5 when there is nothing to tell apart.
double area_under_curve(const std::vector<double>& scores, const std::vector<uint64_t>& counts);

// Failures of the `share` of the units with the highest scores, over those of as many units picked
// blindly. Units of equal score count in equal parts.
double lift(const std::vector<double>& scores, const std::vector<uint64_t>& counts, double share);

struct Interval {
  double low = 0;
  double high = 0;
};
// The central `share` of a Gamma distribution.
Interval gamma_interval(double mean, double shape, double share);

}  // namespace tierpilot::gang

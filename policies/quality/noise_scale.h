// How much neighbouring losses differ that should not.
#pragma once

#include <span>

namespace tierpilot::quality {

// The standard deviation of the noise of a curve sampled at even steps, by what each point differs
// from the mean of its neighbours (Gasser, Sroka and Jennen-Steinmetz, Residual variance and
// residual pattern in nonlinear regression, Biometrika 1986), with the median in place of the mean
// square, so that jumps do not count. 0 for fewer than three points.
double noise_deviation(std::span<const double> losses);

}  // namespace tierpilot::quality

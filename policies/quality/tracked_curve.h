// A fitted curve that begins where the job is now: the newest residuals shift it.
#pragma once

#include <span>

#include "policies/quality/curve_family.h"
#include "policies/quality/loss_history.h"

namespace tierpilot::quality {

using Blocks = std::span<const LossHistory::Block>;

// Blocks joined by age: the newest stand alone, and the older they are, the more become one. A
// weight says how well its mean is known beside `noise`, the deviation of one report.
std::vector<WeightedPoint> joined_by_age(Blocks blocks, double noise);

struct TrackedCurve {
  FittedCurve curve;
  double offset = 0;  // exponential mean of the residuals

  double at(double iteration) const { return curve.at(iteration) + offset; }
};

// The weight of a new residual in that mean which would have foretold the residuals best.
double best_smoothing(const FittedCurve& curve, Blocks blocks);
TrackedCurve track(const FittedCurve& curve, Blocks blocks, double smoothing);

}  // namespace tierpilot::quality

// Reports that have nothing to do with the curve around them: a spike, a misprint.
#pragma once

#include <vector>

#include "policies/quality/tracked_curve.h"

namespace tierpilot::quality {

// The blocks, each that stands far from the median of its neighbours put onto it. A step that lasts
// stays, once it has lasted for half as long as the window is. `noise` as in joined_by_age().
// Source: Davies and Gather, The identification of multiple outliers (Hampel's identifier), Journal
// of the American Statistical Association 1993.
std::vector<LossHistory::Block> without_outliers(Blocks blocks, double noise);

}  // namespace tierpilot::quality

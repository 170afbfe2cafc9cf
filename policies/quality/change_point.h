// Where a curve began anew: another learning rate, other data, a model taken back.
#pragma once

#include <cstddef>

#include "policies/quality/tracked_curve.h"

namespace tierpilot::quality {

// The first block of the newest stretch that one smooth curve can describe; 0 where nothing breaks
// it. A break is a jump of the level between neighbouring stretches that stands far out of the
// noise and out of the slopes beside it, and that lasts.
size_t last_change_point(Blocks blocks);

}  // namespace tierpilot::quality

// What comes until a cluster is full.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/sharing/share.h"

namespace tierpilot::sharing {

// All that is listed, in random order; where that asks for less than so many thousandths of units,
// drawn from it again, and where for more, cut.
std::vector<Request> drawn_arrivals(std::vector<Request> listed, double milli, uint64_t seed);

}  // namespace tierpilot::sharing

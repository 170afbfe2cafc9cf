// Which units of a node a request takes.
#pragma once

#include <vector>

#include "policies/sharing/cluster.h"

namespace tierpilot::sharing {

// `request.units` units that fit, those with the least (or most) free share first, of equals the
// first; fewer where no more fit.
std::vector<uint32_t> fullest_units(const Node& node, const Request& request);
std::vector<uint32_t> freest_units(const Node& node, const Request& request);
// In order of their numbers.
std::vector<uint32_t> first_units(const Node& node, const Request& request);

}  // namespace tierpilot::sharing

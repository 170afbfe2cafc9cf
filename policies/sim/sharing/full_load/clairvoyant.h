// Placement at full load by who knows beforehand all that comes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/sharing/cluster.h"

namespace tierpilot::sharing {

// Where each request goes; those that go nowhere are left out.
using Plan = std::vector<std::optional<Placement>>;

// What those of the first `count` requests that go somewhere ask for, thousandths of units.
uint64_t planned_milli(const Plan& plan, const std::vector<Request>& requests, size_t count);

// On idle nodes, no worse than any of the plans that are given (which have to fit); nobody knows
// how far it is from the best one (at most to `bound_milli`, where it stops; see
// allocation_bound.h). The best of those plans, and of the largest requests first where they fit
// tightest or fragment least, is improved: a few nodes are cleared and filled anew (refilling.h),
// some thirty times as often as there are nodes.
Plan clairvoyant_plan(const std::vector<Node>& nodes, const std::vector<Request>& requests,
                      const std::vector<Plan>& given, uint64_t bound_milli, uint64_t seed);

}  // namespace tierpilot::sharing

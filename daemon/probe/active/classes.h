// Tiers are classes made of what was measured, whatever their node ids and distances are.
#pragma once

#include <cstddef>
#include <vector>

#include "daemon/probe/active/measure.h"

namespace tierpilot {

// Indices, fast to slow: by median latency, among much the same latencies (10 %) by read bandwidth,
// among much the same bandwidths (25 %) in the order given; unmeasured tiers last.
std::vector<size_t> rank_tiers(const std::vector<TierMeasurement>& tiers);

// Sets tier_class: tiers with much the same latency and the same bandwidth are one class. A class
// reaches from its smallest value to so many per cent above it, so a slow slope of many tiers is
// cut into several.
void assign_classes(std::vector<TierMeasurement>& tiers);

}  // namespace tierpilot

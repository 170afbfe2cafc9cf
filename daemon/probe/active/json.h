// Measurements as the JSON that tools print and daemons keep.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "daemon/probe/active/measure.h"

namespace tierpilot {

// {"tier", "kind", "numa_node", "directory", "capacity_bytes", "latency_ns": {"p50", "p99"},
//  "cached_latency_p50_ns", "read_gb_per_s", "write_gb_per_s", "evict_gb_per_s",
//  "promote_gb_per_s", "method", "spread", "rounds", "load_1min", "cost_s"}; a figure that is
//  missing is null and has
// "<figure>_unavailable" with the reason beside it.
nlohmann::ordered_json measurement_to_json(const TierMeasurement& measurement);
nlohmann::ordered_json tier_to_json(const TierSpec& tier);
nlohmann::ordered_json operations_to_json(const OperationRates& rates);

}  // namespace tierpilot

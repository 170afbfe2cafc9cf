// Measurements as the JSON that tools print and daemons keep.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "daemon/probe/active/measure.h"

namespace tierpilot {

// {"tier", "kind", "numa_node", "directory", "capacity_bytes",
//  "latency_ns": {"p50", "p99", "histogram": [[floor_ns, count], ...]}, "cached_latency_p50_ns",
//  "read_gb_per_s", "write_gb_per_s", "copy_gb_per_s", "evict_gb_per_s", "promote_gb_per_s",
//  "evict_first_page_ns", "promote_first_page_ns", "evict_start_ns", "promote_start_ns",
//  "method", "spread", "rounds", "load_1min", "cost_s", "initiator_node", "class", "quality",
//  "quality_reason", "figure_quality": {figure: {"spread", "rounds", "quality",
//  "quality_reason"}}, "cpus", "others_cpu_share"}; a figure that is missing is null and has
// "<figure>_unavailable" with the reason beside it.
nlohmann::ordered_json measurement_to_json(const TierMeasurement& measurement);
nlohmann::ordered_json latency_to_json(const TierMeasurement& measurement);  // its "latency_ns"
void put_measure(nlohmann::ordered_json& object, const std::string& key, const Measure& measure);
void put_quality(nlohmann::ordered_json& object, const Quality& quality);
nlohmann::ordered_json tier_to_json(const TierSpec& tier);
nlohmann::ordered_json operations_to_json(const OperationRates& rates);

// The inverses, between a probe server and its owner. They throw nlohmann::json::exception when
// something is missing or of another type; the qualities are worked out anew.
LatencyCounts latency_counts_from_json(const nlohmann::json& json);
TierMeasurement measurement_from_json(const nlohmann::json& json);
TierSpec tier_from_json(const nlohmann::json& json);
nlohmann::ordered_json options_to_json(const ProbeOptions& options);
ProbeOptions options_from_json(const nlohmann::json& json);

}  // namespace tierpilot

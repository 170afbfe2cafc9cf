// The columns in which tiers are shown.
#pragma once

#include "tools/output/output.h"

namespace tierpilot::tiertool {

inline const std::vector<Column> kTierColumns{
    {"TIER", "/tier"}, {"KIND", "/kind"}, {"CAPACITY", "/capacity_bytes", Format::kBytes}};
inline const std::vector<Column> kLatencyColumns{
    {"P50 ns", "/latency_ns/p50", Format::kNumber},
    {"P99 ns", "/latency_ns/p99", Format::kNumber},
    {"CACHED ns", "/cached_latency_p50_ns", Format::kNumber}};
inline const std::vector<Column> kBandwidthColumns{
    {"READ GB/s", "/read_gb_per_s", Format::kNumber},
    {"WRITE GB/s", "/write_gb_per_s", Format::kNumber}};
inline const std::vector<Column> kEvictionColumns{
    {"EVICT GB/s", "/evict_gb_per_s", Format::kNumber},
    {"PROMOTE GB/s", "/promote_gb_per_s", Format::kNumber}};
inline const std::vector<Column> kEffortColumns{{"SPREAD", "/spread", Format::kPercent},
                                                {"ROUNDS", "/rounds"},
                                                {"COST s", "/cost_s", Format::kNumber}};

}  // namespace tierpilot::tiertool

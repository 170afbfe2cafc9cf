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
    {"WRITE GB/s", "/write_gb_per_s", Format::kNumber},
    {"COPY GB/s", "/copy_gb_per_s", Format::kNumber}};
inline const std::vector<Column> kEvictionColumns{
    {"EVICT GB/s", "/evict_gb_per_s", Format::kNumber},
    {"PROMOTE GB/s", "/promote_gb_per_s", Format::kNumber},
    {"FIRST OUT ns", "/evict_first_page_ns", Format::kNumber},
    {"FIRST IN ns", "/promote_first_page_ns", Format::kNumber}};
inline const std::vector<Column> kEffortColumns{{"SPREAD", "/spread", Format::kPercent},
                                                {"ROUNDS", "/rounds"},
                                                {"QUALITY", "/quality"},
                                                {"COST s", "/cost_s", Format::kNumber}};
inline const std::vector<Column> kHowColumns{
    {"TIER", "/tier"}, {"QUALITY", "/quality_reason"}, {"METHOD", "/method"}};

inline const std::vector<Column> kLatencyDetailColumns{
    {"TIER", "/tier"},
    {"FROM NODE", "/initiator_node"},
    {"PAGES", "/pages"},
    {"P50 ns", "/latency_ns/p50", Format::kNumber},
    {"P99 ns", "/latency_ns/p99", Format::kNumber},
    {"QUALITY", "/quality"},
    {"METHOD", "/method"}};
inline const std::vector<Column> kLoadedDetailColumns{
    {"TIER", "/tier"},
    {"FROM NODE", "/initiator_node"},
    {"LOAD %", "/load_percent"},
    {"LOAD GB/s", "/load_gb_per_s", Format::kNumber},
    {"P50 ns", "/latency_ns/p50", Format::kNumber},
    {"P99 ns", "/latency_ns/p99", Format::kNumber},
    {"QUALITY", "/quality"}};
inline const std::vector<Column> kBandwidthDetailColumns{
    {"TIER", "/tier"},       {"FROM NODE", "/initiator_node"},       {"OPERATION", "/operation"},
    {"THREADS", "/threads"}, {"GB/s", "/gb_per_s", Format::kNumber}, {"QUALITY", "/quality"}};
inline const std::vector<Column> kMoveDetailColumns{
    {"TIER", "/tier"},
    {"SLOWER", "/slower_tier"},
    {"PAGES", "/pages"},
    {"BATCH", "/batch_bytes", Format::kBytes},
    {"EVICT GB/s", "/evict_gb_per_s", Format::kNumber},
    {"PROMOTE GB/s", "/promote_gb_per_s", Format::kNumber},
    {"FIRST OUT ns", "/evict_first_page_ns", Format::kNumber},
    {"FIRST IN ns", "/promote_first_page_ns", Format::kNumber},
    {"QUALITY", "/quality"}};

}  // namespace tierpilot::tiertool

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/json_whole.h"
#include "daemon/probe/active/json.h"

namespace tierpilot {
namespace {

using nlohmann::json;

Measure measure_of(const json& object, const std::string& key) {
  if (const auto& value = object.at(key); !value.is_null()) return {value.get<double>()};
  return {std::nullopt, object.value(key + "_unavailable", "")};
}

template <class Whole>
Whole whole(const json& object, const char* key) {
  return whole_number<Whole>(object.at(key));
}

// Null is -1.
int id_of(const json& object, const char* key) {
  return object.at(key).is_null() ? -1 : whole<int>(object, key);
}

}  // namespace

LatencyCounts latency_counts_from_json(const json& json) {
  LatencyCounts counts;
  for (const auto& each : json)
    counts.emplace_back(whole_number<uint64_t>(each.at(0)), whole_number<uint64_t>(each.at(1)));
  return counts;
}

TierSpec tier_from_json(const json& json) {
  return {.name = json.at("tier"),
          .kind = json.at("kind"),
          .numa_node = id_of(json, "numa_node"),
          .directory = json.at("directory").is_null() ? "" : json.at("directory"),
          .capacity_bytes = whole<uint64_t>(json, "capacity_bytes")};
}

TierMeasurement measurement_from_json(const json& json) {
  TierMeasurement tier{.tier = tier_from_json(json),
                       .initiator_node = id_of(json, "initiator_node")};
  const auto& latency = json.at("latency_ns");
  tier.latency_counts = latency_counts_from_json(latency.at("histogram"));
  for (const auto& [ns, count] : tier.latency_counts) tier.latency_ns.add(ns, count);
  tier.latency_p50_ns = measure_of(latency, "p50");
  tier.latency_p99_ns = measure_of(latency, "p99");
  tier.cached_latency_p50_ns = measure_of(json, "cached_latency_p50_ns");
  tier.read_gb_per_s = measure_of(json, "read_gb_per_s");
  tier.write_gb_per_s = measure_of(json, "write_gb_per_s");
  tier.copy_gb_per_s = measure_of(json, "copy_gb_per_s");
  tier.evict_gb_per_s = measure_of(json, "evict_gb_per_s");
  tier.promote_gb_per_s = measure_of(json, "promote_gb_per_s");
  tier.evict_first_page_ns = measure_of(json, "evict_first_page_ns");
  tier.promote_first_page_ns = measure_of(json, "promote_first_page_ns");
  tier.evict_start_ns = measure_of(json, "evict_start_ns");
  tier.promote_start_ns = measure_of(json, "promote_start_ns");
  tier.method = json.at("method");
  for (const auto& [figure, seen] : json.at("figure_quality").items())
    tier.evidence[figure] = {seen.at("spread"), whole<int>(seen, "rounds")};
  tier.spread = json.at("spread");
  tier.rounds = whole<int>(json, "rounds");
  tier.surroundings = {.cpus = std::max(1, whole<int>(json, "cpus")),
                       .load_1min = json.at("load_1min")};
  if (const auto& others = json.at("others_cpu_share"); !others.is_null())
    tier.surroundings.others_cpu_share = others.get<double>();
  tier.cost_s = json.at("cost_s");
  tier.tier_class = id_of(json, "class");
  return tier;
}

nlohmann::ordered_json options_to_json(const ProbeOptions& options) {
  return {{"rounds", options.rounds},
          {"latency", options.latency},
          {"bandwidth", options.bandwidth},
          {"eviction", options.eviction},
          {"timeout_ms", options.timeout.count()},
          {"enough_ms", options.enough.count()},
          {"node_footprint_bytes", options.node_footprint_bytes},
          {"directory_footprint_bytes", options.directory_footprint_bytes},
          {"transfer_bytes", options.transfer_bytes}};
}

ProbeOptions options_from_json(const json& json) {
  return {.rounds = whole<int>(json, "rounds"),
          .latency = json.at("latency"),
          .bandwidth = json.at("bandwidth"),
          .eviction = json.at("eviction"),
          .timeout = std::chrono::milliseconds(whole<int64_t>(json, "timeout_ms")),
          .enough = std::chrono::milliseconds(whole<int64_t>(json, "enough_ms")),
          .node_footprint_bytes = whole<uint64_t>(json, "node_footprint_bytes"),
          .directory_footprint_bytes = whole<uint64_t>(json, "directory_footprint_bytes"),
          .transfer_bytes = whole<uint64_t>(json, "transfer_bytes")};
}

}  // namespace tierpilot

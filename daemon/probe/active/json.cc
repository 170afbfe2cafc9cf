#include "daemon/probe/active/json.h"

#include <nlohmann/json.hpp>

#include "daemon/probe/active/observation.h"

namespace tierpilot {
namespace {

using nlohmann::ordered_json;

void put(ordered_json& object, const std::string& key, const Measure& measure) {
  object[key] = measure.value ? ordered_json(*measure.value) : ordered_json(nullptr);
  if (!measure.value) object[key + "_unavailable"] = measure.unavailable;
}

}  // namespace

ordered_json tier_to_json(const TierSpec& tier) {
  return {{"tier", tier.name},
          {"kind", tier.kind},
          {"numa_node", tier.is_directory() ? ordered_json(nullptr) : ordered_json(tier.numa_node)},
          {"directory", tier.is_directory() ? ordered_json(tier.directory) : ordered_json(nullptr)},
          {"capacity_bytes", tier.capacity_bytes}};
}

ordered_json measurement_to_json(const TierMeasurement& measurement) {
  auto json = tier_to_json(measurement.tier);
  put(json["latency_ns"], "p50", measurement.latency_p50_ns);
  put(json["latency_ns"], "p99", measurement.latency_p99_ns);
  put(json, "cached_latency_p50_ns", measurement.cached_latency_p50_ns);
  put(json, "read_gb_per_s", measurement.read_gb_per_s);
  put(json, "write_gb_per_s", measurement.write_gb_per_s);
  put(json, "evict_gb_per_s", measurement.evict_gb_per_s);
  put(json, "promote_gb_per_s", measurement.promote_gb_per_s);
  json["method"] = measurement.method;
  json["spread"] = measurement.spread;
  json["rounds"] = measurement.rounds;
  json["load_1min"] = measurement.load_1min;
  json["cost_s"] = measurement.cost_s;
  return json;
}

ordered_json operations_to_json(const OperationRates& rates) {
  return {{"float32_ops_per_s", rates.float32_ops_per_s},
          {"int32_ops_per_s", rates.int32_ops_per_s},
          {"float32_ops_per_int32_op", rates.float32_ops_per_int32_op()},
          {"method", rates.method}};
}

std::string observation_to_line(const Observation& observation) {
  nlohmann::json json{{"tier", observation.tier},
                      {"figure", observation.figure},
                      {"text", observation.text},
                      {"counts", observation.latency_counts}};
  if (observation.value) json["value"] = *observation.value;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Observation> observation_from_line(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  const auto bad = [&] {
    return fail(ErrorCode::kInvalid, "not an observation: " + std::string(line.substr(0, 80)));
  };
  if (!json.is_object()) return bad();
  try {
    Observation observation{.tier = json.at("tier").get<size_t>(),
                            .figure = json.at("figure").get<std::string>(),
                            .text = json.at("text").get<std::string>(),
                            .latency_counts = json.at("counts").get<LatencyCounts>()};
    if (json.contains("value")) observation.value = json["value"].get<double>();
    return observation;
  } catch (const nlohmann::json::exception&) {
    return bad();
  }
}

}  // namespace tierpilot

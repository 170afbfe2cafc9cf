#include "daemon/probe/active/json.h"

#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "base/text/json_whole.h"
#include "daemon/probe/active/observation.h"

namespace tierpilot {
using nlohmann::ordered_json;

void put_measure(ordered_json& object, const std::string& key, const Measure& measure) {
  object[key] = measure.value ? ordered_json(*measure.value) : ordered_json(nullptr);
  if (!measure.value) object[key + "_unavailable"] = measure.unavailable;
}

void put_quality(ordered_json& object, const Quality& quality) {
  object["quality"] = grade_name(quality.grade);
  object["quality_reason"] = quality.reason;
}

ordered_json latency_to_json(const TierMeasurement& measurement) {
  ordered_json json;
  put_measure(json, "p50", measurement.latency_p50_ns);
  put_measure(json, "p99", measurement.latency_p99_ns);
  json["histogram"] = measurement.latency_counts;
  return json;
}

ordered_json tier_to_json(const TierSpec& tier) {
  return {{"tier", tier.name},
          {"kind", tier.kind},
          {"numa_node", tier.is_directory() ? ordered_json(nullptr) : ordered_json(tier.numa_node)},
          {"directory", tier.is_directory() ? ordered_json(tier.directory) : ordered_json(nullptr)},
          {"capacity_bytes", tier.capacity_bytes}};
}

ordered_json measurement_to_json(const TierMeasurement& measurement) {
  auto json = tier_to_json(measurement.tier);
  json["latency_ns"] = latency_to_json(measurement);
  put_measure(json, "cached_latency_p50_ns", measurement.cached_latency_p50_ns);
  put_measure(json, "read_gb_per_s", measurement.read_gb_per_s);
  put_measure(json, "write_gb_per_s", measurement.write_gb_per_s);
  put_measure(json, "copy_gb_per_s", measurement.copy_gb_per_s);
  put_measure(json, "evict_gb_per_s", measurement.evict_gb_per_s);
  put_measure(json, "promote_gb_per_s", measurement.promote_gb_per_s);
  put_measure(json, "evict_first_page_ns", measurement.evict_first_page_ns);
  put_measure(json, "promote_first_page_ns", measurement.promote_first_page_ns);
  put_measure(json, "evict_start_ns", measurement.evict_start_ns);
  put_measure(json, "promote_start_ns", measurement.promote_start_ns);
  json["method"] = measurement.method;
  json["spread"] = measurement.spread;
  json["rounds"] = measurement.rounds;
  json["load_1min"] = measurement.surroundings.load_1min;
  json["cost_s"] = measurement.cost_s;
  json["initiator_node"] = measurement.initiator_node < 0
                               ? ordered_json(nullptr)
                               : ordered_json(measurement.initiator_node);
  json["class"] =
      measurement.tier_class < 0 ? ordered_json(nullptr) : ordered_json(measurement.tier_class);
  put_quality(json, measurement.quality());
  auto& qualities = json["figure_quality"] = ordered_json::object();
  for (const auto& [figure, evidence] : measurement.evidence) {
    auto& one = qualities[figure] = {{"spread", evidence.spread}, {"rounds", evidence.rounds}};
    put_quality(one, measurement.quality(figure));
  }
  json["cpus"] = measurement.surroundings.cpus;
  const auto& others = measurement.surroundings.others_cpu_share;
  json["others_cpu_share"] = others ? ordered_json(*others) : ordered_json(nullptr);
  if (!others)
    json["others_cpu_share_unavailable"] = "/proc/stat does not tell, or too short a time";
  return json;
}

ordered_json operations_to_json(const OperationRates& rates) {
  return {{"float32_ops_per_s", rates.float32_ops_per_s},
          {"int32_ops_per_s", rates.int32_ops_per_s},
          {"float32_ops_per_int32_op", rates.float32_ops_per_int32_op()},
          {"method", rates.method}};
}

std::string observation_to_line(const ProbeObservation& observation) {
  nlohmann::json json{{"tier", observation.tier},
                      {"figure", observation.figure},
                      {"text", observation.text},
                      {"counts", observation.latency_counts}};
  if (observation.value) json["value"] = *observation.value;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<ProbeObservation> observation_from_line(std::string_view line) {
  const auto json = parse_json_or_discard<nlohmann::json>(line);
  const auto bad = [&] {
    return fail(ErrorCode::kInvalid, "not an observation: " + std::string(line.substr(0, 80)));
  };
  if (!json.is_object()) return bad();
  try {
    ProbeObservation observation{.tier = whole_number<size_t>(json.at("tier")),
                                 .figure = json.at("figure").get<std::string>(),
                                 .text = json.at("text").get<std::string>(),
                                 .latency_counts = latency_counts_from_json(json.at("counts"))};
    if (json.contains("value")) observation.value = json["value"].get<double>();
    return observation;
  } catch (const nlohmann::json::exception&) {
    return bad();
  }
}

}  // namespace tierpilot

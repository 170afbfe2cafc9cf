#include "daemon/agent/calibration/calibration_update.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/probe/active/classes.h"

namespace tierpilot::agent {
namespace {

struct Figure {
  const char* name;  // as in the evidence
  Measure TierMeasurement::*member;
};
constexpr Figure kFigures[] = {{"latency_ns", &TierMeasurement::latency_p50_ns},
                               {"latency_ns", &TierMeasurement::latency_p99_ns},
                               {"read_gb_per_s", &TierMeasurement::read_gb_per_s},
                               {"write_gb_per_s", &TierMeasurement::write_gb_per_s},
                               {"copy_gb_per_s", &TierMeasurement::copy_gb_per_s},
                               {"evict_gb_per_s", &TierMeasurement::evict_gb_per_s},
                               {"promote_gb_per_s", &TierMeasurement::promote_gb_per_s},
                               {"evict_first_page_ns", &TierMeasurement::evict_first_page_ns},
                               {"promote_first_page_ns", &TierMeasurement::promote_first_page_ns},
                               {"evict_start_ns", &TierMeasurement::evict_start_ns},
                               {"promote_start_ns", &TierMeasurement::promote_start_ns}};

bool is_noisy(const TierMeasurement& tier) {
  return tier.quality("latency_ns").grade == Grade::kNoisy;
}

TierMeasurement merged(const TierMeasurement& before, TierMeasurement now) {
  if (is_noisy(now) && !is_noisy(before)) return before;
  for (const auto& [name, member] : kFigures) {
    const auto& old = before.*member;
    if ((now.*member).value || !old.value) continue;
    now.*member = old;
    if (const auto seen = before.evidence.find(name); seen != before.evidence.end())
      now.evidence[name] = seen->second;
  }
  now.cost_s += before.cost_s;
  return now;
}

TierMeasurement without_figures(const TierSpec& spec, const std::string& reason) {
  TierMeasurement tier{.tier = spec};
  for (const auto& [name, member] : kFigures) tier.*member = {std::nullopt, reason};
  tier.cached_latency_p50_ns = {std::nullopt, reason};
  tier.method = "not measured";
  return tier;
}

// Fast to slow again; the pool's tiers stay the pool's.
void rank_anew(Calibration& calibration) {
  auto& tiers = calibration.tiers;
  assign_classes(tiers);
  const auto order = rank_tiers(tiers);
  std::vector<TierMeasurement> ranked;
  for (const size_t i : order) ranked.push_back(std::move(tiers[i]));
  tiers = std::move(ranked);
  const auto place = [&order](size_t before) {
    return static_cast<size_t>(std::find(order.begin(), order.end(), before) - order.begin());
  };
  calibration.fast = place(calibration.fast);
  calibration.slow = place(calibration.slow);
}

}  // namespace

std::vector<TierSpec> remeasurable(const Calibration& calibration) {
  std::vector<TierSpec> nodes;
  for (const auto& tier : calibration.tiers)
    if (!tier.tier.is_directory()) nodes.push_back(tier.tier);
  return nodes;
}

void take_over(Calibration& calibration, const std::vector<TierMeasurement>& measured) {
  for (auto& tier : calibration.tiers)
    for (const auto& now : measured)
      if (now.tier.name == tier.tier.name) tier = merged(tier, now);
  rank_anew(calibration);
}

std::vector<std::string> follow(Calibration& calibration, const Topology& topology) {
  std::vector<std::string> told;
  const auto candidates = candidate_tiers(topology, {});
  if (!candidates) return told;
  const auto& tiers = calibration.tiers;
  std::vector<TierMeasurement> kept;
  const auto fast = calibration.fast, slow = calibration.slow;
  for (size_t i = 0; i < tiers.size(); ++i) {
    const auto& spec = tiers[i].tier;
    const auto now = std::find_if(candidates->begin(), candidates->end(),
                                  [&](const auto& c) { return c.numa_node == spec.numa_node; });
    const bool gone = !spec.is_directory() && now == candidates->end();
    if (gone && i != fast && i != slow) continue;
    if (i == fast) calibration.fast = kept.size();
    if (i == slow) calibration.slow = kept.size();
    kept.push_back(gone ? without_figures(spec, fmt::format("node {} went offline", spec.numa_node))
                        : tiers[i]);
    if (gone)
      told.push_back(
          fmt::format("the pool's {} tier {} went offline: restart the daemon to choose "
                      "another",
                      i == fast ? "fast" : "slow", spec.name));
    else if (!spec.is_directory())
      kept.back().tier = *now;
  }
  for (const auto& spec : *candidates)
    if (std::none_of(tiers.begin(), tiers.end(),
                     [&](const auto& t) { return t.tier.numa_node == spec.numa_node; }))
      kept.push_back(without_figures(spec, "came online and was not measured yet"));
  calibration.tiers = std::move(kept);
  rank_anew(calibration);
  return told;
}

std::vector<MetricValue> tier_metrics(const Calibration& calibration) {
  std::vector<MetricValue> values;
  const auto add = [&values](const TierMeasurement& tier, const char* name, const Measure& from) {
    values.push_back({fmt::format("tier_{}_{}", tier.tier.name, name),
                      from.value ? Result<double>(*from.value)
                                 : fail(ErrorCode::kUnavailable, from.unavailable)});
  };
  for (const auto& tier : calibration.tiers) {
    add(tier, "latency_p50_ns", tier.latency_p50_ns);
    add(tier, "latency_p99_ns", tier.latency_p99_ns);
    add(tier, "read_gb_per_s", tier.read_gb_per_s);
    add(tier, "write_gb_per_s", tier.write_gb_per_s);
    add(tier, "evict_gb_per_s", tier.evict_gb_per_s);
    add(tier, "promote_gb_per_s", tier.promote_gb_per_s);
  }
  return values;
}

}  // namespace tierpilot::agent

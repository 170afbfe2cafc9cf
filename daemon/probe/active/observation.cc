#include "daemon/probe/active/observation.h"

#include <algorithm>

#include "base/statistics.h"

namespace tierpilot {
namespace {

Evidence evidence_of(const std::vector<double>& values) {
  return {spread(values), static_cast<int>(values.size())};
}

}  // namespace

void Ledger::add(const ProbeObservation& observation) {
  if (observation.figure == figure::kMethod) {
    method_ += (method_.empty() ? "" : "; ") + observation.text;
  } else if (observation.figure == figure::kCost) {
    cost_s_ += observation.value.value_or(0);
  } else if (observation.figure == figure::kInitiator) {
    initiator_node_ = static_cast<int>(std::clamp(observation.value.value_or(-1), -1.0, 65535.0));
  } else if (!observation.latency_counts.empty()) {
    const auto& round = observation.latency_counts;
    p50_ns_.push_back(weighted_quantile(round, 0.5));
    p99_ns_.push_back(weighted_quantile(round, 0.99));
    latency_counts_.insert(latency_counts_.end(), round.begin(), round.end());
  } else if (observation.value) {
    values_[observation.figure].push_back(*observation.value);
  } else {
    explain_missing(observation.figure, observation.text);
  }
}

void Ledger::explain_missing(std::string_view figure, std::string reason) {
  reasons_.try_emplace(std::string(figure), std::move(reason));
}

Measure Ledger::median_of(std::string_view figure) const {
  if (const auto at = values_.find(figure); at != values_.end()) return {median(at->second)};
  const auto why = reasons_.find(figure);
  return {std::nullopt, why == reasons_.end() ? "not measured" : why->second};
}

TierMeasurement Ledger::measurement() const {
  TierMeasurement result{.tier = tier_, .initiator_node = initiator_node_};
  result.latency_counts = bucketed(latency_counts_);
  for (const auto& [ns, count] : result.latency_counts) result.latency_ns.add(ns, count);
  result.latency_p50_ns = result.latency_p99_ns = median_of(figure::kLatency);
  if (!p50_ns_.empty()) {
    result.latency_p50_ns = {median(p50_ns_)};
    result.latency_p99_ns = {median(p99_ns_)};
    result.evidence[std::string(figure::kLatency)] = evidence_of(p50_ns_);
    result.evidence[std::string(figure::kLatencyTail)] = evidence_of(p99_ns_);
  }
  result.cached_latency_p50_ns = median_of(figure::kCachedLatency);
  result.read_gb_per_s = median_of(figure::kRead);
  result.write_gb_per_s = median_of(figure::kWrite);
  result.copy_gb_per_s = median_of(figure::kCopy);
  result.evict_gb_per_s = median_of(figure::kEvict);
  result.promote_gb_per_s = median_of(figure::kPromote);
  result.evict_first_page_ns = median_of(figure::kFirstEvict);
  result.promote_first_page_ns = median_of(figure::kFirstPromote);
  result.evict_start_ns = median_of(figure::kStartEvict);
  result.promote_start_ns = median_of(figure::kStartPromote);
  result.method = method_;
  result.cost_s = cost_s_;
  for (const auto& [figure, values] : values_) result.evidence[figure] = evidence_of(values);
  for (const auto& [name, evidence] : result.evidence) {
    if (!figure::is_of_few(name)) result.spread = std::max(result.spread, evidence.spread);
    result.rounds = std::max(result.rounds, evidence.rounds);
  }
  return result;
}

}  // namespace tierpilot

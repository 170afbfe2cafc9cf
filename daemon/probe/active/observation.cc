#include "daemon/probe/active/observation.h"

#include <algorithm>

namespace tierpilot {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double spread(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double middle = median(values);
  return middle > 0 ? (*high - *low) / middle : 0;
}

}  // namespace

void Ledger::add(const Observation& observation) {
  if (observation.figure == figure::kMethod) {
    method_ += (method_.empty() ? "" : "; ") + observation.text;
  } else if (observation.figure == figure::kCost) {
    cost_s_ += observation.value.value_or(0);
  } else if (!observation.latency_counts.empty()) {
    Histogram round;
    for (const auto& [ns, count] : observation.latency_counts) round.add(ns, count);
    p50_ns_.push_back(round.quantile(0.5));
    p99_ns_.push_back(round.quantile(0.99));
    latency_ns_.merge(round);
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
  TierMeasurement result{.tier = tier_, .latency_ns = latency_ns_};
  result.latency_p50_ns = result.latency_p99_ns = median_of(figure::kLatency);
  if (!p50_ns_.empty()) {
    result.latency_p50_ns = {median(p50_ns_)};
    result.latency_p99_ns = {median(p99_ns_)};
    result.spread = spread(p50_ns_);
  }
  result.cached_latency_p50_ns = median_of(figure::kCachedLatency);
  result.read_gb_per_s = median_of(figure::kRead);
  result.write_gb_per_s = median_of(figure::kWrite);
  result.evict_gb_per_s = median_of(figure::kEvict);
  result.promote_gb_per_s = median_of(figure::kPromote);
  result.method = method_;
  result.cost_s = cost_s_;
  size_t rounds = p50_ns_.size();
  for (const auto& [figure, values] : values_) {
    rounds = std::max(rounds, values.size());
    result.spread = std::max(result.spread, spread(values));
  }
  result.rounds = static_cast<int>(rounds);
  return result;
}

}  // namespace tierpilot

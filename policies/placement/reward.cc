#include "policies/placement/reward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tierpilot {
namespace {

bool positive(double value) {
  return std::isfinite(value) && value > 0;
}

}  // namespace

Result<RewardParts> compute_reward(const ServiceMeasure& measure, const RewardSettings& settings) {
  if (!positive(measure.service_ns) || !positive(measure.reference_ns))
    return fail(ErrorCode::kInvalid,
                fmt::format("reward: service time {} ns and reference {} ns must both be positive",
                            measure.service_ns, measure.reference_ns));
  if (!std::isfinite(measure.utilisation))
    return fail(ErrorCode::kInvalid, "reward: utilisation is not a finite number");
  RewardParts parts;
  parts.utilisation = std::clamp(measure.utilisation, 0.0, 1.0);
  parts.latency_term = std::min(measure.reference_ns / measure.service_ns, 1.0);
  parts.evicted = measure.evicted_bytes > 0;
  double memory = parts.latency_term;
  if (parts.evicted) {
    if (!positive(measure.evict_bytes_per_s))
      return fail(ErrorCode::kInvalid,
                  fmt::format("reward: {} bytes were evicted but the eviction bandwidth is unknown",
                              measure.evicted_bytes));
    const double evict_ns =
        static_cast<double>(measure.evicted_bytes) / measure.evict_bytes_per_s * 1e9;
    parts.penalty_term = evict_ns / measure.reference_ns;
    memory = std::max(settings.penalty_floor * parts.latency_term,
                      parts.latency_term - parts.penalty_term);
  }
  const double w = settings.utilisation_weight;
  parts.reward = w * parts.utilisation + (1 - w) * memory;
  return parts;
}

}  // namespace tierpilot

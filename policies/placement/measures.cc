#include "policies/placement/measures.h"

#include <algorithm>
#include <cmath>

namespace tierpilot {

std::vector<BoundedMeasure> placement_measures(const RewardSettings& reward) {
  // R = w U + (1 - w) max(beta / L, 1 / L - Rp), all three of them within [0, 1].
  const double lowest = (1 - reward.utilisation_weight) * reward.penalty_floor;
  return {
      {.name = "reward", .low = lowest, .high = 1, .larger_is_better = true},
      {.name = "response", .low = 0, .high = RelativeResponse::kMost, .larger_is_better = false}};
}

std::optional<double> RelativeResponse::of(double response_s, double estimate_s) {
  if (!std::isfinite(response_s) || response_s < 0 || !std::isfinite(estimate_s))
    return std::nullopt;
  const double quotient = response_s / (estimate_s > 0 ? estimate_s : 1);
  if (!std::isfinite(quotient)) return std::nullopt;
  if (count_ == 0) usual_ = quotient;
  const double relative = usual_ > 0 ? std::min(quotient / usual_, kMost) : 1;
  const double memory = 1.0 / static_cast<double>(std::min<uint64_t>(++count_, 256));
  usual_ += memory * (usual_ > 0 ? relative * usual_ - usual_ : quotient);
  return relative;
}

}  // namespace tierpilot

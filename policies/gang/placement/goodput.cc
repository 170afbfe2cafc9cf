#include "policies/gang/placement/goodput.h"

#include <algorithm>
#include <cmath>

namespace tierpilot::gang {

double goodput(const TryUse& use) {
  const double worked_h = use.kept_h - use.stalled_h;
  if (!std::isfinite(use.held_h) || !std::isfinite(worked_h)) return kLeastGoodput;
  if (use.held_h <= 0 || worked_h <= 0) return kLeastGoodput;
  const double kept = std::min(worked_h / use.held_h, kMostGoodput);
  if (!use.estimated_h || !std::isfinite(*use.estimated_h)) return kept;
  const double speed = std::clamp(*use.estimated_h / worked_h, 0.0, 1.0);
  return std::clamp(kept * speed, kLeastGoodput, kMostGoodput);
}

}  // namespace tierpilot::gang

// Which losses are reckoned with.
#pragma once

#include <cmath>

namespace tierpilot::quality {

// Beyond this, squares overflow: such losses are left out as if they were not finite.
inline constexpr double kLargestLoss = 1e100;

inline bool is_usable_loss(double value) {
  return std::isfinite(value) && std::abs(value) < kLargestLoss;
}

}  // namespace tierpilot::quality

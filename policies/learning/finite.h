// Whether numbers that were read can be gone on with.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace tierpilot {

inline bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace tierpilot

// What a network was trained on, feature by feature: beyond it, its values mean nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>

namespace tierpilot {

template <size_t kSize>
struct ValueRange {
  std::array<float, kSize> low = filled(std::numeric_limits<float>::infinity());
  std::array<float, kSize> high = filled(-std::numeric_limits<float>::infinity());

  bool known() const { return low[0] <= high[0]; }

  // `features` has kSize floats for each of those that were seen.
  void widen(std::span<const float> features) {
    for (size_t i = 0; i < features.size(); ++i) {
      low[i % kSize] = std::min(low[i % kSize], features[i]);
      high[i % kSize] = std::max(high[i % kSize], features[i]);
    }
  }
  void widen(const ValueRange& other) {
    for (size_t i = 0; i < kSize; ++i) {
      low[i] = std::min(low[i], other.low[i]);
      high[i] = std::max(high[i], other.high[i]);
    }
  }

  // The first feature that is further out than a quarter of its range; kSize: none,
  // or nothing is known. Features are logarithms and shares of about one unit: a tenth of it is
  // always allowed.
  size_t first_outside(const float* features) const {
    if (!known()) return kSize;
    for (size_t i = 0; i < kSize; ++i) {
      const float slack = std::max(0.1F, (high[i] - low[i]) / 4);
      if (!(features[i] >= low[i] - slack && features[i] <= high[i] + slack)) return i;
    }
    return kSize;
  }

  bool operator==(const ValueRange&) const = default;

 private:
  static constexpr std::array<float, kSize> filled(float value) {
    std::array<float, kSize> all{};
    all.fill(value);
    return all;
  }
};

}  // namespace tierpilot

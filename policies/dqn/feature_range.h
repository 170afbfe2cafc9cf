// What a network was trained on, feature by feature: beyond it, its values mean nothing.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "policies/dqn/tokens.h"

namespace tierpilot {

struct FeatureRange {
  std::array<float, kTokenSize> low = filled(std::numeric_limits<float>::infinity());
  std::array<float, kTokenSize> high = filled(-std::numeric_limits<float>::infinity());

  bool known() const { return low[0] <= high[0]; }

  // `features` has kTokenSize floats for each token.
  void widen(std::span<const float> features) {
    for (size_t i = 0; i < features.size(); ++i) {
      low[i % kTokenSize] = std::min(low[i % kTokenSize], features[i]);
      high[i % kTokenSize] = std::max(high[i % kTokenSize], features[i]);
    }
  }
  void widen(const FeatureRange& other) {
    for (size_t i = 0; i < kTokenSize; ++i) {
      low[i] = std::min(low[i], other.low[i]);
      high[i] = std::max(high[i], other.high[i]);
    }
  }

  // The first feature of a token that is further out than a quarter of its range; kTokenSize: none,
  // or nothing is known. Features are logarithms and shares of about one unit: a tenth of it is
  // always allowed.
  size_t first_outside(const float* token) const {
    if (!known()) return kTokenSize;
    for (size_t i = 0; i < kTokenSize; ++i) {
      const float slack = std::max(0.1F, (high[i] - low[i]) / 4);
      if (!(token[i] >= low[i] - slack && token[i] <= high[i] + slack)) return i;
    }
    return kTokenSize;
  }

  bool operator==(const FeatureRange&) const = default;

 private:
  static constexpr std::array<float, kTokenSize> filled(float value) {
    std::array<float, kTokenSize> all{};
    all.fill(value);
    return all;
  }
};

}  // namespace tierpilot

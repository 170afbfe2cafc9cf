// The six features of S1 as they are for one slot.
#pragma once

#include <array>
#include <span>

#include "policies/learning/value_range.h"
#include "policies/placement/published/observation.h"

namespace tierpilot {

inline constexpr std::array<const char*, 6> kSlotFeatures{
    "engine utilisation", "free fast memory", "overlap",
    "operations",         "size of the data", "writes"};
using SlotFeatures = std::array<float, kSlotFeatures.size()>;
using SlotRange = ValueRange<kSlotFeatures.size()>;

// `values`: ObservationLayout::kSize floats.
inline SlotFeatures features_of(std::span<const float> values, size_t slot) {
  using Layout = ObservationLayout;
  return {values[Layout::kUtilisation + slot], values[Layout::kFreeFast + slot],
          values[Layout::kOverlap + slot],     values[Layout::kOperations],
          values[Layout::kDataSize],           values[Layout::kWrites]};
}

}  // namespace tierpilot

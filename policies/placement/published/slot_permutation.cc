#include "policies/placement/published/slot_permutation.h"

#include <algorithm>
#include <numeric>

namespace tierpilot {

SlotPermutation::SlotPermutation() {
  std::iota(to_.begin(), to_.end(), uint8_t{0});
}

void SlotPermutation::append(const std::vector<float>& values, std::vector<float>& out) const {
  using Layout = ObservationLayout;
  const size_t begin = out.size();
  out.insert(out.end(), values.begin(), values.end());
  for (size_t feature : {Layout::kUtilisation, Layout::kFreeFast, Layout::kOverlap})
    for (size_t slot = 0; slot < kSlots; ++slot)
      out[begin + feature + to_[slot]] = values[feature + slot];
}

SlotPermutation random_permutation(const SlotMask& slots, std::mt19937_64& generator) {
  std::vector<uint8_t> labels;
  for (size_t slot = 0; slot < kSlots; ++slot)
    if (slots[slot]) labels.push_back(static_cast<uint8_t>(slot));
  std::vector<uint8_t> shuffled = labels;
  std::shuffle(shuffled.begin(), shuffled.end(), generator);
  SlotPermutation permutation;
  for (size_t i = 0; i < labels.size(); ++i) permutation.to_[labels[i]] = shuffled[i];
  return permutation;
}

}  // namespace tierpilot

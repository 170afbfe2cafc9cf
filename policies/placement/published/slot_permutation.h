// Relabelling the slots of an observation, to make more experiences of one.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "policies/placement/published/observation.h"

namespace tierpilot {

class SlotPermutation {
 public:
  SlotPermutation();  // leaves everything where it is

  uint32_t slot(uint32_t old_slot) const { return to_[old_slot]; }
  // Appends `values`, laid out as Observation::values, with every per-node feature moved.
  void append(const std::vector<float>& values, std::vector<float>& out) const;

 private:
  friend SlotPermutation random_permutation(const SlotMask& slots, std::mt19937_64& generator);
  std::array<uint8_t, kSlots> to_;
};

// Any order of `slots` among themselves, all with the same probability; the others stay.
SlotPermutation random_permutation(const SlotMask& slots, std::mt19937_64& generator);

}  // namespace tierpilot

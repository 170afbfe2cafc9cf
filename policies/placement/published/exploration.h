// Masked epsilon-greedy.
#pragma once

#include <cstdint>
#include <random>
#include <span>

#include "policies/placement/published/observation.h"

namespace tierpilot {

struct SlotChoice {
  uint32_t slot = 0;
  bool explored = false;
};

// The slot with the largest finite q among `candidates`, with probability `epsilon` a random
// *other* candidate (S1). With a single candidate there is nothing to explore. `candidates` must
// hold a slot with a finite q; `q` has kSlots values.
SlotChoice choose_slot(std::span<const float> q, const SlotMask& candidates, double epsilon,
                       std::mt19937_64& generator);

// The candidate with the largest q; kSlots when there is none with a finite q.
uint32_t greedy_slot(std::span<const float> q, const SlotMask& candidates);

}  // namespace tierpilot

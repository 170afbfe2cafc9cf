#include "policies/placement/published/exploration.h"

#include <cmath>
#include <vector>

namespace tierpilot {

uint32_t greedy_slot(std::span<const float> q, const SlotMask& candidates) {
  uint32_t best = kSlots;
  for (uint32_t slot = 0; slot < kSlots; ++slot)
    if (candidates[slot] && std::isfinite(q[slot]) && (best == kSlots || q[slot] > q[best]))
      best = slot;
  return best;
}

SlotChoice choose_slot(std::span<const float> q, const SlotMask& candidates, double epsilon,
                       std::mt19937_64& generator) {
  const uint32_t best = greedy_slot(q, candidates);
  if (!std::bernoulli_distribution(epsilon)(generator)) return {best, false};
  std::vector<uint32_t> others;
  for (uint32_t slot = 0; slot < kSlots; ++slot)
    if (candidates[slot] && slot != best) others.push_back(slot);
  if (others.empty()) return {best, false};
  return {others[std::uniform_int_distribution<size_t>(0, others.size() - 1)(generator)], true};
}

}  // namespace tierpilot

// Room for swapping: what nodes offer in a run, and which tasks ask for some. Drawn from the seed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/swap_tier_words.h"
#include "coordinator/model.h"
#include "tests/dst/plan.h"

namespace tierpilot::dst {

using SwapTiers = std::vector<SwapTierWords>;  // fast to slow

bool swaps(uint64_t seed, const Kinds& included);
// In some runs a node has none, and in others one tier or two.
SwapTiers swap_tiers_of(uint64_t seed, int node, const Kinds& included);
uint64_t offered_bytes(const SwapTiers& tiers);
// So many tenths of each tier.
SwapTiers less_of(SwapTiers tiers, uint64_t tenths);

// In runs that swap most tasks ask for room; few for more than there is.
void make_swappers(uint64_t seed, uint64_t number, const Kinds& included,
                   std::vector<TaskSpec>& tasks);

}  // namespace tierpilot::dst

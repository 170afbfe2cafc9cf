// [swap] of the node daemon's configuration: the tiers in which tasks may ask for room, for tensors
// that their programs swap out.
#pragma once

#include <cstdint>
#include <vector>

#include "base/config.h"
#include "base/swap_tier_words.h"

namespace tierpilot {

// Notes wrong values with the reader. `numa_nodes`: those with memory.
std::vector<SwapTierWords> read_swap_tiers(ConfigReader& reader,
                                           const std::vector<int>& numa_nodes);

// Of all of them together.
uint64_t swap_room_bytes(const std::vector<SwapTierWords>& tiers);

}  // namespace tierpilot

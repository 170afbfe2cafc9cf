// Which of the tiers for swapping is filled first.
#pragma once

#include <vector>

#include "base/swap_tier_words.h"
#include "daemon/probe/active/measure.h"

namespace tierpilot::agent {

// Fast to slow by the time of a copy out and back, where all of them were measured (a directory:
// one on its file system); else as they are.
std::vector<SwapTierWords> fast_to_slow(std::vector<SwapTierWords> tiers,
                                        const std::vector<TierMeasurement>& measured);

}  // namespace tierpilot::agent

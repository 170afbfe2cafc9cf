// The failures that a simulator has to expect of a cluster whose true rates nobody knows.
#pragma once

#include "policies/sim/gang/gang_scene.h"

namespace tierpilot::gang {

// The true rates are as estimated; or they are drawn from what the estimate leaves open.
enum class TrueRates : uint8_t { kAsEstimated, kDrawn };

// By `failures.past` of the scene's units and the prior of its estimates; the past stays as it is.
// They go on until five times the time of the last arrival and of the longest job.
UnitFailures estimated_failures(const GangScene& scene, TrueRates rates, uint64_t seed);

}  // namespace tierpilot::gang

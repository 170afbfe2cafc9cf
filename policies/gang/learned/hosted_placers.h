// What may place the gangs of a real cluster.
#pragma once

#include "policies/gang/placement/placer.h"

namespace tierpilot::gang {

inline constexpr const char* kDefaultGangPolicy = "ac";
// What those that learned are held against, and decides where they may not.
inline constexpr const char* kGangHeuristic = "expected-time";

// placers() that do without the future, and those that learned by simulation.
const PlacerModules& hosted_placers();

}  // namespace tierpilot::gang

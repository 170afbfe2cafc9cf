// What may place the gangs of a real cluster.
#pragma once

#include "policies/gang/placement/placer.h"

namespace tierpilot::gang {

// placers() that do without the future, and those that learned by simulation.
const ModuleList<PlacerModule>& hosted_placers();

}  // namespace tierpilot::gang

// Ranks that a gang has beyond those it asked for are lent: others that wait get them back.
#pragma once

#include <cstdint>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

// How many of its lent ranks are worth as much as what others in the queue wait for beyond what is
// idle. Who waits for more than is idle and lent together would still wait, and does not count.
uint32_t lent_ranks_waited_for(const ClusterState& state, const Task& gang);

}  // namespace tierpilot

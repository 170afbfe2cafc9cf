// Ranks that a gang has beyond those it asked for are lent: others that wait get them back.
#pragma once

#include <cstdint>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

// How many of its lent ranks are worth as much as what others wait for beyond what is idle, in the
// queue or in the backlogs of its nodes. Who waits for more than is idle and lent together, for
// something else, or for another node would still wait, and does not count.
uint32_t lent_ranks_waited_for(const ClusterState& state, const Task& gang);

// Whether somebody in the queue waits for units that are idle, or for any.
bool others_wait_for_units(const ClusterState& state);

}  // namespace tierpilot

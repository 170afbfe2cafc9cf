// What a later coordinator is to know of a node.
#pragma once

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

// Without it, a later coordinator would take the node for another instance.
void remember(ClusterState& state, const NodeRecord& node);

}  // namespace tierpilot

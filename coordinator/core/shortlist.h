// Which nodes a decision looks at. Looking at all of a thousand nodes costs more than it finds; the
// idea is that of Kubernetes' percentageOfNodesToScore, but the choice is not random. Pure.
#pragma once

#include <vector>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

// Whether the node can take the task now: it has room for its units (up to the backlog), its memory
// and its data.
bool can_take(const CoreSettings& settings, const NodeRecord& node, const Task& task,
              uint64_t data_bytes);

// All nodes that are up, if there are at most CoreSettings::considered_nodes. Else as many that can
// take the task: up to half of them for the data they hold, most bytes first, the others, in
// this order, for having the least load.
std::vector<const NodeRecord*> shortlist(const ClusterState& state, const Task& task,
                                         uint64_t data_bytes);

}  // namespace tierpilot

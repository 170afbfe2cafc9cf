// How long a task's own work takes on a node, and what of it its checkpoints keep.
#pragma once

#include "policies/sim/model/cluster_spec.h"

namespace tierpilot::sim {

// From its launch to its end, in seconds. `left_operations`: of each unit. `restarted`: it has been
// tried before.
double run_s(const NodeGroup& group, const Checkpoints& checkpoints, double left_operations,
             bool restarted);

// Operations of each unit that need not be done again, of a run that was cut off after so long.
double kept_operations(const NodeGroup& group, const Checkpoints& checkpoints, double ran_s,
                       bool restarted);

}  // namespace tierpilot::sim

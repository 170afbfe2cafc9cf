// What a node is told of the task that it is given.
#pragma once

#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

// Remembers in the task which versions of its data it was given. `checkpoint`: that it begins from;
// empty: from nothing.
Assignment make_assignment(const ClusterState& state, Task& task, const std::string& node,
                           const std::string& checkpoint);

}  // namespace tierpilot

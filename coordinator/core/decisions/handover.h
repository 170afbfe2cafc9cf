// A decision goes to the disk, and then its task to the node.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/nodes/node_link.h"
#include "coordinator/core/outcomes/lifecycle.h"

namespace tierpilot {

// `decided`: as they are to stand on disk. `refused` after the node did not take it. All are to
// outlive the loop's work.
void hand_over_once_written(ClusterState& state, Lifecycle& lifecycle,
                            std::shared_ptr<const Assignment> assignment,
                            std::shared_ptr<const std::pair<Task, DecisionRecord>> decided,
                            std::function<void()> refused);

}  // namespace tierpilot

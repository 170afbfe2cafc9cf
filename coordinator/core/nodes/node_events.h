// What became of nodes, for an operator to read: in the log, and in the store for `tierctl node
// show`.
#pragma once

#include <string>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

void note(ClusterState& state, const std::string& node, const std::string& what,
          const std::string& why);

// Its health has just closed the node to tasks: nobody waits for it any more.
void close_node(ClusterState& state, NodeRecord& node);

// What is placed anew when this does not start: of a rank its gang.
uint64_t placed_as(const Task& task);

// What a report of an attempt's end says about the node.
void judge_node(ClusterState& state, NodeRecord& node, Task& task, const TaskExit& exit);

}  // namespace tierpilot

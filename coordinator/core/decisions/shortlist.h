// Which nodes a decision looks at: those of policies/scheduling/shortlist.h. Pure.
#pragma once

#include <vector>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

// Whether the node can take the task once it has units left: it takes tasks, has the units, the
// memory, room for the data, and now as much room for swapping: when others give that back, nobody
// can tell.
bool could_take(const NodeRecord& node, const Task& task, uint64_t data_bytes);
// Whether it can take it now: up to the backlog it has units left as well.
bool can_take(const CoreSettings& settings, const NodeRecord& node, const Task& task,
              uint64_t data_bytes);

// A task that waits for units where it would have room for swapping, while others pass.
struct Awaiting {
  const Task* task = nullptr;
  uint64_t data_bytes = 0;

  // Units that come free there are its.
  bool keeps(const NodeRecord& node) const {
    return task != nullptr && could_take(node, *task, data_bytes);
  }
};

// All nodes that are up, if there are at most CoreSettings::considered_nodes, else the shortlist;
// of a task for one node that node, if it can take it. By slot. `with_full`: and a few for the data
// they hold, although they cannot take it now. Of a shortlist nodes that are kept for `first` are
// no part.
std::vector<const NodeRecord*> shortlist(const ClusterState& state, const Task& task,
                                         uint64_t data_bytes, bool with_full = false,
                                         const Awaiting& first = {});

}  // namespace tierpilot

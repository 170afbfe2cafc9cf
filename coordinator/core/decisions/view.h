// What a policy is shown for one task. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/decisions/shortlist.h"
#include "policies/interface/values.h"

namespace tierpilot {

// A view and its nodes in the registry (which forgets none), in the same order.
struct PlacementView {
  View view;
  std::vector<const NodeRecord*> records;
  bool has_candidate() const;
};

// What the node is and does, and what it holds of the task's data.
NodeState seen_of(const ClusterState& state, const NodeRecord& node, const TaskSpec& spec);

// The shortlisted nodes; candidates are those of them that can take the task now.
// `shows_full`: among them are some that are full, and it says so. None that is kept for `first`
// is either.
PlacementView make_view(const ClusterState& state, const Task& task, bool shows_full = false,
                        const Awaiting& first = {});

}  // namespace tierpilot

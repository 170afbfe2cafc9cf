// What a policy is shown for one task. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/decisions/shortlist.h"
#include "coordinator/core/gangs/gang_plan.h"
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

// The queued task to place next and why others before it could not be; tasks wait for room in the
// order of their places, those whose data no node with room has in fast memory later than they
// stand, but one that waits for a dataset, for a node of its own or for a larger one lets others
// pass, and so does one that is kept back. One that waits for room for swapping lets those pass
// that want none; so does one that waits for units of nodes with such room, where others have units
// and no room: the former are kept for it.
struct NextTask {
  Task* task = nullptr;
  PlacementView placement;
  std::optional<GangPlan> gang{};  // where it is one
};
NextTask next_task(ClusterState& state, GangPolicies& gangs, bool shows_full = false);

}  // namespace tierpilot

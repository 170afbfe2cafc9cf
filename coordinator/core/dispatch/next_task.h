// Which task is placed next.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "coordinator/core/decisions/view.h"
#include "coordinator/core/gangs/gang_plan.h"

namespace tierpilot {

// The queued task to place next and why others before it could not be; tasks wait for room in the
// order of their places, those whose data no node with room has in fast memory later than they
// stand, but one that waits for a dataset, for a node of its own or for a larger one lets others
// pass, and so does one that is kept back. One that waits for room for swapping lets those pass
// that want none; so does one that waits for units of nodes with such room, where others have units
// and no room: the former are kept for it.

// Where a look at the queue begins, and what those before that place have kept for them.
struct LookFrom {
  QueuePlace place;
  std::optional<uint64_t> swaps{};  // the task that room for swapping, and its nodes, are kept for
  std::set<std::string> swaps_there{};  // nodes whose room tasks wait for that may run nowhere else
};

struct NextTask {
  Task* task = nullptr;
  PlacementView placement;
  std::optional<GangPlan> gang{};  // where it is one
  // There is none before this, where all let others pass, and nobody has looked further.
  std::optional<LookFrom> beyond{};
};
// `from`: nobody before that place, as long as the task that something is kept for waits.
NextTask next_task(ClusterState& state, GangPolicies& gangs, bool shows_full = false,
                   const std::optional<LookFrom>& from = std::nullopt);

}  // namespace tierpilot

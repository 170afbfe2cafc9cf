// What a policy may decide, and for how long it may keep a task back (held_tasks.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "policies/interface/values.h"
#include "policies/scheduling/estimate.h"
#include "policies/scheduling/held_tasks.h"

namespace tierpilot {

inline bool is_candidate(const View& view, size_t node) {
  return node < view.nodes.size() && view.nodes[node].candidate;
}

// The decision is to keep the task back, and it may be.
inline bool is_kept_back(const View& view, const Decision& decision) {
  const size_t full = decision.held_for;
  return view.may_hold && decision.node == kNoNode && full < view.nodes.size() &&
         view.nodes[full].full;
}

// Neither for too long already, nor beside too many others. `nodes`: that are up.
inline bool may_be_held(const HeldTasks& held, uint64_t task, int64_t now_ns, size_t nodes) {
  const auto* entry = held.find(task);
  return entry ? now_ns < entry->until_ns : held.size() < HeldTasks::most(nodes);
}

// From when it is first kept back, at most; see held_tasks.h.
inline double longest_hold_s(const View& view) {
  return std::clamp(best_finish_s(view), 0.0, HeldTasks::kLongest_s);
}

// What the task adds to those that wait for a node.
inline HeldTasks::Load load_when_held(const TaskFeatures& task) {
  return {task.units, task.operations * task.units};
}

}  // namespace tierpilot

// Tasks that the policy keeps back (policies/scheduling/held_tasks.h).
#include "policies/scheduling/holding_rules.h"
#include "policies/sim/simulation.h"

namespace tierpilot::sim {

void Simulation::hold(uint32_t task, const View& view, size_t node) {
  const uint32_t slot = view.nodes[node].slot;
  const int64_t until_ns = after_s(now_ns_, longest_hold_s(view));
  ++recorder_.counts.holds;
  if (!held_back_.find(task))
    events_.push(until_ns, EventKind::kHeldLongest, task, ++states_[task].generation);
  const NodeState& full = view.nodes[node];
  held_back_.hold(queue_.place(task), slot, load_when_held(view.task), now_ns_, until_ns,
                  has_units_left(full.assigned, full.units, cluster_.coordinator.backlog_units));
  view_.set_held(slot, held_back_.load(slot));
  head_[next_].waits_for = BlockedHead::kHeld;
}

void Simulation::wake_held() {
  for (const uint64_t task : held_back_.wake_for_room()) {
    const uint32_t slot = held_back_.find(task)->slot;
    view_.set_held(slot, held_back_.load(slot));
    head_.woken(queue_.place(static_cast<uint32_t>(task)));
  }
}

void Simulation::wake_those_held_for(uint32_t node) {
  for (const uint64_t task : held_back_.wake_all(node))
    head_.woken(queue_.place(static_cast<uint32_t>(task)));
  view_.set_held(node, {});
}

void Simulation::held_longest(uint32_t task) {
  const auto* held = held_back_.find(task);
  if (!held) return;
  held_back_.wake(task);
  view_.set_held(held->slot, held_back_.load(held->slot));
  head_.woken(queue_.place(task));
  work_available_ = true;
}

void Simulation::placed_after_hold(uint32_t task) {
  const auto* held = held_back_.find(task);
  if (!held) return;
  first_asked_ns_[task] = held->since_ns;
  forget_held(task);
}

void Simulation::forget_held(uint32_t task) {
  const auto* held = held_back_.find(task);
  if (!held) return;
  const uint32_t slot = held->slot;
  held_back_.forget(task);
  view_.set_held(slot, held_back_.load(slot));
}

int64_t Simulation::asked_ns(uint32_t task) const {
  const auto held = first_asked_ns_.find(task);
  return held == first_asked_ns_.end() ? states_[task].decided_ns : held->second;
}

}  // namespace tierpilot::sim

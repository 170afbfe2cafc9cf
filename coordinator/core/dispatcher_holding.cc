// Tasks that the policy keeps back for a full node (policies/held_tasks.h).
#include <fmt/format.h>

#include <algorithm>

#include "coordinator/core/dispatcher.h"
#include "policies/estimate.h"

namespace tierpilot {

Oversight::Turn Dispatcher::turn_of(uint64_t task, const View& view) {
  auto turn = oversight_.next(host_.active());
  const auto held = held_.extract(task);
  if (!held.empty() && held.mapped().same_standing(turn)) return held.mapped();
  turn.estimate_s = best_finish_s(view);
  return turn;
}

void Dispatcher::hold(const Open& open, const Decision& decision) {
  const uint64_t id = open.attempt.task;
  auto* task = state_.tasks.find(id);
  if (!task || task->state != TaskState::kQueued || task->attempt + 1 != open.attempt.attempt)
    return;  // cancelled while the policy thought
  const auto& wanted = open.view().task;
  const double longest_s = std::min(best_finish_s(open.view()), HeldTasks::kLongest_s);
  const bool first = state_.held.find(id) == nullptr;
  state_.held.hold(id, open.view().nodes[decision.held_for].slot,
                   {wanted.units, wanted.operations * wanted.units}, open.asked_ns,
                   open.asked_ns + static_cast<int64_t>(longest_s * 1e9));
  held_[id] = open.turn;
  std::erase_if(held_, [&](const auto& each) { return !state_.held.find(each.first); });
  task->reason = fmt::format("kept back for node '{}', which has its data",
                             open.placement->records[decision.held_for]->facts.name);
  if (!first) return;
  hooks_.after(static_cast<int64_t>(longest_s * 1e6), [this, id] {
    state_.held.wake(id);
    pump();
  });
}

}  // namespace tierpilot

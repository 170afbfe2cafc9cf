#include "coordinator/core/decisions/holding.h"

#include <algorithm>

#include "coordinator/core/decisions/shortlist.h"
#include "policies/scheduling/holding_rules.h"

namespace tierpilot {
namespace {

// While the policy thought, the node may have got room, lost the data or gone, which nobody would
// tell again.
bool can_still_hold(const ClusterState& state, const OpenDecision& open, size_t full) {
  const auto* task = state.tasks.find(open.attempt.task);
  if (!task || task->state != TaskState::kQueued ||
      state.next_attempt(*task) != open.attempt.attempt)
    return false;
  const NodeRecord& node = *open.placement->records[full];
  const NodeState& seen = open.view().nodes[full];
  const auto has = state.catalog.held(task->spec, node.facts.name);
  const uint64_t data_bytes = open.view().task.data_bytes;
  return has.fast_bytes + has.slow_bytes >= seen.held_fast_bytes + seen.held_slow_bytes &&
         could_take(node, *task, data_bytes) && !can_take(state.settings, node, *task, data_bytes);
}

}  // namespace

bool Holding::allowed(const std::string& policy) const {
  const auto* module = host_.modules().find(policy);
  return state_.settings.hold_tasks && module && (module->holds || oversight_.guard(policy));
}

bool Holding::may_be_held(uint64_t task) const {
  return allowed(host_.active()) &&
         tierpilot::may_be_held(state_.held, task, state_.clock.boot_ns(),
                                state_.registry.summary().up_count());
}

void Holding::wake() {
  if (state_.held.empty()) return;
  const Guard* guard = oversight_.guard(host_.active());
  std::pair keeper(host_.active(), guard ? guard->era() : 0);
  if (!allowed(keeper.first) || keeper != kept_by_) state_.held.wake_everything();
  state_.held.wake_for_room();
  kept_by_ = std::move(keeper);
}

Holding::Asked Holding::asked(uint64_t task, const View& view) {
  const auto held = asked_.find(task);
  if (held != asked_.end() && still_decides(host_, oversight_, held->second.turn))
    return held->second;
  Asked anew{oversight_.next(host_.active()), state_.clock.boot_ns()};
  anew.turn.estimate_s = best_finish_s(view);
  return anew;
}

void Holding::hold(const OpenDecision& open, const Decision& decision) {
  const uint64_t id = open.attempt.task;
  if (!can_still_hold(state_, open, decision.held_for)) return;
  const NodeRecord& node = *open.placement->records[decision.held_for];
  if (state_.held.empty()) kept_by_ = {open.turn.policy, open.turn.ticket.era};
  state_.held.hold({state_.tasks.find(id)->place_s, id}, node.slot,
                   load_when_held(open.view().task), open.asked_ns,
                   open.asked_ns + static_cast<int64_t>(longest_hold_s(open.view()) * 1e9),
                   node.has_units(state_.settings.backlog_units));
  asked_[id] = {open.turn, open.first_asked_ns};
  if (asked_.size() > state_.held.size())
    std::erase_if(asked_, [&](const auto& each) { return !state_.held.find(each.first); });
  watch();
}

void Holding::end(const NodeRecord& node, DecisionRecord& record) {
  const uint64_t task = record.attempt.task;
  const auto* held = state_.held.find(task);
  if (!held) return;
  const int64_t kept_ns = state_.clock.boot_ns() - held->since_ns;
  record.kept_back_for = state_.registry.slots().name_of(held->slot);
  record.kept_back_ms = kept_ns / 1'000'000;
  state_.scores.kept_back(asked_[task].turn.policy, kept_ns, held->slot == node.slot);
  state_.held.forget(task);
  asked_.erase(task);
}

void Holding::watch() {
  const int64_t due_ns = state_.held.next_due_ns();
  if (due_ns >= watched_ns_) return;
  watched_ns_ = due_ns;
  const int64_t in_ns = std::max<int64_t>(due_ns - state_.clock.boot_ns(), 0);
  hooks_.after(in_ns / 1000 + 1, [this, due_ns] {
    if (watched_ns_ == due_ns) watched_ns_ = INT64_MAX;
    state_.held.wake_due(state_.clock.boot_ns());
    watch();
    hooks_.pump();
  });
}

}  // namespace tierpilot

#include "policies/sim/queue/kept_back_tasks.h"

#include "policies/scheduling/holding_rules.h"
#include "policies/scheduling/room.h"
#include "policies/sim/events/event_queue.h"

namespace tierpilot::sim {

bool KeptBackTasks::may_hold(uint32_t task, int64_t now_ns) const {
  return may_be_held(held_, task, now_ns, nodes_.up().size());
}

std::optional<int64_t> KeptBackTasks::hold(QueuePlace place, const View& shown, size_t full,
                                           int64_t now_ns) {
  const NodeState& node = shown.nodes[full];
  const uint32_t slot = node.slot;
  const int64_t until_ns = after_s(now_ns, longest_hold_s(shown));
  const bool first = !held_.find(place.second);
  held_.hold(place, slot, load_when_held(shown.task), now_ns, until_ns,
             has_units_left(node.assigned, node.units, backlog_units_));
  tell(slot);
  return first ? std::optional(until_ns) : std::nullopt;
}

void KeptBackTasks::forget(uint32_t task) {
  const auto* held = held_.find(task);
  if (!held) return;
  const uint32_t node = held->slot;
  held_.forget(task);
  tell(node);
}

std::optional<int64_t> KeptBackTasks::take_known_asked_ns(uint32_t task) {
  const auto found = first_asked_ns_.find(task);
  if (found == first_asked_ns_.end()) return std::nullopt;
  const int64_t asked_ns = found->second;
  first_asked_ns_.erase(found);
  return asked_ns;
}

std::set<uint64_t> KeptBackTasks::wake_all(uint32_t node) {
  nodes_.set_held(node, {});
  return held_.wake_all(node);
}

bool KeptBackTasks::wake(uint32_t task) {
  const auto* held = held_.find(task);
  if (!held) return false;
  held_.wake(task);
  tell(held->slot);
  return true;
}

}  // namespace tierpilot::sim

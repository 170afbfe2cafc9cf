// Tasks that the policy keeps back for a full node (policies/scheduling/held_tasks.h), when it was
// first asked about them, and what the view says of those that wait for a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>

#include "policies/interface/values.h"
#include "policies/scheduling/held_tasks.h"
#include "policies/sim/view/node_states.h"

namespace tierpilot::sim {

class KeptBackTasks {
 public:
  // Nodes get `backlog_units` beyond their own.
  KeptBackTasks(NodeStates& nodes, uint32_t backlog_units)
      : nodes_(nodes), backlog_units_(backlog_units) {}

  size_t size() const { return held_.size(); }
  // Nothing has changed since it was kept back: it would be again.
  bool waits(uint32_t task) const { return held_.waits(task); }
  bool may_hold(uint32_t task, int64_t now_ns) const;

  // For the node that stands at `full` of the view that the policy was shown. When it has to be
  // asked about again; nothing: that was said when it was first kept back.
  std::optional<int64_t> hold(QueuePlace place, const View& shown, size_t full, int64_t now_ns);
  // It was given to a node.
  void placed(uint32_t task) {
    if (const auto* held = held_.empty() ? nullptr : held_.find(task)) {
      first_asked_ns_[task] = held->since_ns;
      forget(task);
    }
  }
  // It will not be placed.
  void forget(uint32_t task);
  // When the policy was first asked about a task that it had kept back before it was placed, once;
  // nothing: it was asked only once.
  std::optional<int64_t> take_first_asked_ns(uint32_t task) {
    return first_asked_ns_.empty() ? std::nullopt : take_known_asked_ns(task);
  }

  // The node has room for somebody.
  void room(uint32_t node) { held_.room(node); }
  // Calls woken(task) with each that is to be asked about, as its node has room.
  template <class Woken>
  void wake_for_room(Woken woken) {
    if (held_.empty()) return;
    for (const uint64_t task : held_.wake_for_room()) {
      tell(held_.find(task)->slot);
      woken(task);
    }
  }
  // All that wait for the node, as it is gone.
  std::set<uint64_t> wake_all(uint32_t node);
  // It may be kept back no longer. False: it is not.
  bool wake(uint32_t task);

 private:
  std::optional<int64_t> take_known_asked_ns(uint32_t task);
  void tell(uint32_t node) { nodes_.set_held(node, held_.load(node)); }

  NodeStates& nodes_;
  const uint32_t backlog_units_;
  HeldTasks held_;
  std::unordered_map<uint32_t, int64_t> first_asked_ns_;  // by task; of those that were placed
};

}  // namespace tierpilot::sim

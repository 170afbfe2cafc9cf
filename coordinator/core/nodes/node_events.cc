#include "coordinator/core/nodes/node_events.h"

#include "base/log.h"
#include "coordinator/store/records.h"

namespace tierpilot {

void note(ClusterState& state, const std::string& node, const std::string& what,
          const std::string& why) {
  spdlog::warn("node '{}': {}: {}", node, what, why);
  state.store.write([event = NodeEvent{state.clock.wall_ms(), node, what, why}](
                        Db& db) { return records::put_node_event(db, event); },
                    nullptr);
}

void close_node(ClusterState& state, NodeRecord& node) {
  state.registry.look_anew();
  state.held.wake_all(node.slot);
  note(state, node.facts.name, "paused", node.closed_because());
}

uint64_t placed_as(const Task& task) {
  return task.rank ? task.rank->gang : task.id;
}

void judge_node(ClusterState& state, NodeRecord& node, Task& task, const TaskExit& exit) {
  const bool did_not_start = exit.how == TaskEnd::kCouldNotStart && exit.node_fault;
  if (!did_not_start && exit.how != TaskEnd::kDataFailed) return;
  const int64_t now_ns = state.clock.boot_ns();
  node.health.keep_off(placed_as(task), task.faults++, now_ns);
  // Data is mostly missed for what another node did.
  if (did_not_start && node.health.failed_to_start(placed_as(task), exit.reason, now_ns))
    close_node(state, node);
}

}  // namespace tierpilot

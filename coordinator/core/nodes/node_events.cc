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
  state.registry.look_who_is_open();
  state.held.wake_all(node.slot);
  note(state, node.facts.name, "paused", node.closed_because());
}

}  // namespace tierpilot

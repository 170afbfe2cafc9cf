#include "coordinator/core/nodes/node_memory.h"

#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

using Away = records::NodeMemory::Away;

Away away_of(const NodeRecord& node) {
  if (node.has_left) return Away::kStopped;
  return node.life == NodeLife::kLost ? Away::kLost : Away::kNo;
}

}  // namespace

void remember(ClusterState& state, const NodeRecord& node) {
  const auto& name = node.facts.name;
  const auto slot = state.registry.slots().find(name);
  if (!slot) return;
  const records::NodeMemory memory{*slot, node.facts.instance, away_of(node)};
  state.owed.write(node_key(name),
                   [name, memory](Db& db) { return records::put_node(db, name, memory); });
}

}  // namespace tierpilot

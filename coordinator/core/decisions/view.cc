#include "coordinator/core/decisions/view.h"

#include <algorithm>

#include "coordinator/core/decisions/shortlist.h"

namespace tierpilot {

bool PlacementView::has_candidate() const {
  return std::any_of(view.nodes.begin(), view.nodes.end(),
                     [](const NodeState& node) { return node.candidate; });
}

NodeState seen_of(const ClusterState& state, const NodeRecord& node, const TaskSpec& spec) {
  const auto held = state.catalog.held(spec, node.facts.name);
  NodeState seen;
  seen.slot = node.slot;
  seen.running = node.running_units;
  seen.assigned = node.assigned_units;
  seen.units = node.facts.units;
  seen.free_fast_bytes = node.fast_free_bytes;
  seen.fast_budget_bytes = node.facts.fast_budget_bytes;
  seen.held_fast_bytes = held.fast_bytes;
  seen.held_slow_bytes = held.slow_bytes;
  seen.assigned_operations = node.assigned_operations;
  seen.assigned_fetch_bytes = node.assigned_fetch_bytes;
  seen.rates = node.rates();
  return seen;
}

PlacementView make_view(const ClusterState& state, const Task& task, bool shows_full,
                        const Awaiting& first) {
  PlacementView placement;
  auto& features = placement.view.task;
  features.operations = operations_of(task.spec, state.registry.summary().int32_to_float);
  features.data_bytes = state.catalog.data_bytes(task.spec);
  features.writes = std::any_of(task.spec.datasets.begin(), task.spec.datasets.end(),
                                [](const DatasetUse& use) { return use.write; });
  features.units = task.spec.units;
  const auto listed_nodes = shortlist(state, task, features.data_bytes, shows_full, first);
  placement.view.nodes.reserve(listed_nodes.size());
  placement.records.reserve(listed_nodes.size());
  for (const NodeRecord* listed : listed_nodes) {
    const NodeRecord& node = *listed;
    NodeState seen = seen_of(state, node, task.spec);
    const bool is_kept = first.keeps(node);
    seen.candidate = !is_kept && can_take(state.settings, node, task, features.data_bytes);
    if (shows_full) {
      const auto kept_back = state.held.load(node.slot);
      seen.full = !is_kept && !seen.candidate && could_take(node, task, features.data_bytes);
      seen.held_units = kept_back.units;
      seen.held_operations = kept_back.operations;
    }
    placement.view.nodes.push_back(seen);
    placement.records.push_back(listed);
  }
  return placement;
}

}  // namespace tierpilot

#include "coordinator/core/view.h"

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/core/shortlist.h"

namespace tierpilot {
namespace {

// How far a task that only waits for data may be overtaken in one look.
constexpr int kMaxOvertaken = 256;

}  // namespace

double operations_of(const TaskSpec& spec, const Registry& registry) {
  return spec.float_operations + spec.int_operations * registry.int32_to_float();
}

bool PlacementView::has_candidate() const {
  return std::any_of(view.nodes.begin(), view.nodes.end(),
                     [](const NodeState& node) { return node.candidate; });
}

PlacementView make_view(const ClusterState& state, const Task& task, bool shows_full) {
  PlacementView placement;
  auto& features = placement.view.task;
  features.operations = operations_of(task.spec, state.registry);
  features.data_bytes = state.catalog.data_bytes(task.spec);
  features.writes = std::any_of(task.spec.datasets.begin(), task.spec.datasets.end(),
                                [](const DatasetUse& use) { return use.write; });
  features.units = task.spec.units;
  const auto listed_nodes = shortlist(state, task, features.data_bytes, shows_full);
  placement.view.nodes.reserve(listed_nodes.size());
  placement.records.reserve(listed_nodes.size());
  for (const NodeRecord* listed : listed_nodes) {
    const NodeRecord& node = *listed;
    const auto held = state.catalog.held(task.spec, node.facts.name);
    NodeState seen;
    seen.slot = node.slot;
    seen.candidate = can_take(state.settings, node, task, features.data_bytes);
    if (shows_full) {
      const auto kept_back = state.held.load(node.slot);
      seen.full = !seen.candidate && could_take(node, task, features.data_bytes);
      seen.held_units = kept_back.units;
      seen.held_operations = kept_back.operations;
    }
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
    placement.view.nodes.push_back(seen);
    placement.records.push_back(listed);
  }
  return placement;
}

NextTask next_task(ClusterState& state, bool shows_full) {
  int looked_at = 0;
  for (const uint64_t id : state.tasks.queue()) {
    if (state.held.waits(id)) continue;
    if (++looked_at > kMaxOvertaken) break;
    auto& task = *state.tasks.find(id);
    task.reason = state.catalog.blocked_by(task);
    if (!task.reason.empty()) continue;
    auto placement = make_view(state, task, shows_full);
    if (placement.has_candidate()) return {&task, std::move(placement)};
    if (!state.registry.up_shapes().hold(
            {task.spec.units, task.spec.memory_bytes, state.catalog.data_bytes(task.spec)})) {
      task.reason = "waiting for a node that is large enough: none of those that are up is";
      continue;
    }
    if (task.spec.node.empty()) {
      task.reason = "waiting for a node with room";
      break;
    }
    task.reason = fmt::format("waiting for room on node '{}'", task.spec.node);
  }
  return {};
}

}  // namespace tierpilot

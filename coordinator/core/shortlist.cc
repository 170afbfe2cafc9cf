#include "coordinator/core/shortlist.h"

#include <algorithm>
#include <map>

namespace tierpilot {
namespace {

using Nodes = std::vector<const NodeRecord*>;

double load_of(const NodeRecord& node) {
  return static_cast<double>(node.assigned_units) / node.facts.units;
}

// Bytes of the task's data by node; a node that has it in slow memory only counts half, as in
// locality_load_score.
std::map<std::string, double> holders(const ClusterState& state, const Task& task) {
  std::map<std::string, double> held;
  for (const auto& use : task.spec.datasets) {
    const auto* entry = state.catalog.find(use.dataset);
    if (!entry) continue;
    for (const auto& [name, replica] : entry->replicas)
      if (replica.version == entry->dataset.version && (replica.in_fast || replica.in_slow))
        held[name] += static_cast<double>(replica.bytes) * (replica.in_fast ? 1 : 0.5);
  }
  return held;
}

// Moves the `count` first by `before` to the front and cuts off the others.
template <class Before>
void keep_first(Nodes& nodes, size_t count, Before before) {
  if (nodes.size() <= count) return;
  std::nth_element(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(count), nodes.end(),
                   before);
  nodes.resize(count);
}

Nodes with_most_data(const ClusterState& state, const Task& task, const Nodes& able, size_t count) {
  const auto held = holders(state, task);
  Nodes nodes;
  for (const auto* node : able)
    if (held.contains(node->facts.name)) nodes.push_back(node);
  keep_first(nodes, count, [&](const NodeRecord* a, const NodeRecord* b) {
    return std::pair(-held.at(a->facts.name), load_of(*a)) <
           std::pair(-held.at(b->facts.name), load_of(*b));
  });
  return nodes;
}

}  // namespace

bool can_take(const CoreSettings& settings, const NodeRecord& node, const Task& task,
              uint64_t data_bytes) {
  return node.can_be_asked() && (task.spec.node.empty() || task.spec.node == node.facts.name) &&
         task.spec.units <= node.facts.units && task.spec.memory_bytes <= node.facts.memory_bytes &&
         data_bytes <= node.facts.fast_budget_bytes &&
         node.assigned_units + task.spec.units <= node.facts.units + settings.backlog_units;
}

std::vector<const NodeRecord*> shortlist(const ClusterState& state, const Task& task,
                                         uint64_t data_bytes) {
  const size_t count = state.settings.considered_nodes;
  const Nodes& up = state.registry.up();
  if (up.size() <= count) return up;
  Nodes able;
  able.reserve(up.size());
  for (const auto* node : up)
    if (can_take(state.settings, *node, task, data_bytes)) able.push_back(node);
  if (able.size() <= count) return able;
  Nodes chosen;
  if (!task.spec.datasets.empty()) chosen = with_most_data(state, task, able, count / 2);
  std::sort(chosen.begin(), chosen.end());
  std::erase_if(able, [&](const NodeRecord* node) {
    return std::binary_search(chosen.begin(), chosen.end(), node);
  });
  keep_first(able, count - chosen.size(), [](const NodeRecord* a, const NodeRecord* b) {
    return std::pair(load_of(*a), a->slot) < std::pair(load_of(*b), b->slot);
  });
  chosen.insert(chosen.end(), able.begin(), able.end());
  std::sort(chosen.begin(), chosen.end(),
            [](const NodeRecord* a, const NodeRecord* b) { return a->slot < b->slot; });
  return chosen;
}

}  // namespace tierpilot

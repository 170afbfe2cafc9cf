#include "coordinator/core/decisions/shortlist.h"

#include <algorithm>
#include <map>

#include "policies/scheduling/speed_class.h"

namespace tierpilot {
namespace {

using Nodes = std::vector<const NodeRecord*>;

double load_of(const NodeRecord& node) {
  return static_cast<double>(node.assigned_units) / node.facts.units;
}

// Bytes of the task's data by node; a node that has it in slow memory only counts half.
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

// Of those for which `able` is true.
template <class Able>
Nodes with_most_data(const ClusterState& state, const Task& task, size_t count, Able able) {
  const auto held = holders(state, task);
  Nodes nodes;
  for (const auto& [name, bytes] : held)
    if (const auto* node = state.registry.find(name); node && able(*node)) nodes.push_back(node);
  keep_first(nodes, count, [&](const NodeRecord* a, const NodeRecord* b) {
    return std::pair(-held.at(a->facts.name), load_of(*a)) <
           std::pair(-held.at(b->facts.name), load_of(*b));
  });
  return nodes;
}

// Up to `count` in all, least load first: of each class as many, the fastest first; what a class is
// short of falls to the slower ones, and in the end to any.
template <class Wanted>
void add_of_each_class(const NodesBySpeed& nodes, size_t count, Nodes& chosen, Wanted wanted) {
  std::vector<std::pair<NodesByLoad::const_iterator, NodesByLoad::const_iterator>> left;
  for (const auto& [speed, alike] : nodes)
    left.emplace_back(alike.with_room.begin(), alike.with_room.end());
  const auto add = [&](auto& part, size_t most) {
    for (; part.first != part.second && chosen.size() < most; ++part.first)
      if (wanted(*part.first)) chosen.push_back(*part.first);
  };
  for (size_t i = 0; i < left.size(); ++i)
    add(left[i], chosen.size() + fair_share(count - chosen.size(), left.size() - i));
  for (auto& part : left) add(part, count);
}

Nodes full_with_most_data(const ClusterState& state, const Task& task, uint64_t data_bytes) {
  constexpr size_t kMost = 8;
  return with_most_data(state, task, kMost, [&](const NodeRecord& node) {
    return could_take(node, task, data_bytes) && !can_take(state.settings, node, task, data_bytes);
  });
}

}  // namespace

bool could_take(const NodeRecord& node, const Task& task, uint64_t data_bytes) {
  return node.takes(task.id) && (task.spec.node.empty() || task.spec.node == node.facts.name) &&
         task.spec.units <= node.facts.units && task.spec.memory_bytes <= node.facts.memory_bytes &&
         data_bytes <= node.facts.fast_budget_bytes;
}

bool can_take(const CoreSettings& settings, const NodeRecord& node, const Task& task,
              uint64_t data_bytes) {
  return could_take(node, task, data_bytes) &&
         node.assigned_units + task.spec.units <= node.facts.units + settings.backlog_units;
}

std::vector<const NodeRecord*> shortlist(const ClusterState& state, const Task& task,
                                         uint64_t data_bytes, bool with_full) {
  const size_t count = state.settings.considered_nodes;
  const Nodes& up = state.registry.up();
  if (up.size() <= count) return up;
  const auto able = [&](const NodeRecord* node) {
    return node && can_take(state.settings, *node, task, data_bytes);
  };
  if (!task.spec.node.empty()) {
    const auto* node = state.registry.find(task.spec.node);
    return able(node) ? Nodes{node} : Nodes{};
  }
  Nodes chosen;
  chosen.reserve(count);
  if (!task.spec.datasets.empty())
    chosen =
        with_most_data(state, task, count / 2, [&](const NodeRecord& node) { return able(&node); });
  std::sort(chosen.begin(), chosen.end());
  const size_t for_data = chosen.size();
  const auto has = [&](const NodeRecord* node) {
    const auto end = chosen.begin() + static_cast<ptrdiff_t>(for_data);
    return std::binary_search(chosen.begin(), end, node);
  };
  add_of_each_class(state.registry.up_by_speed(state.settings.backlog_units), count, chosen,
                    [&](const NodeRecord* node) { return able(node) && !has(node); });
  if (with_full && !task.spec.datasets.empty())
    for (const auto* node : full_with_most_data(state, task, data_bytes)) chosen.push_back(node);
  return chosen;
}

}  // namespace tierpilot

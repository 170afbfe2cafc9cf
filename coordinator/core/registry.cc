#include "coordinator/core/registry.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot {

const char* node_life_name(NodeLife life) {
  switch (life) {
    case NodeLife::kExpected:
      return "expected";
    case NodeLife::kUp:
      return "up";
    case NodeLife::kLost:
      break;
  }
  return "lost";
}

NodeRates NodeRecord::rates() const {
  NodeRates all = facts.rates;
  all.operations_per_s = operations.per_s();
  all.fetch_bytes_per_s = fetches.per_s();
  return all;
}

void NodeRecord::count(Task& task, double operations, uint64_t fetch_bytes) {
  task.counted_operations = operations * task.spec.units;
  task.counted_fetch_bytes = fetch_bytes;
  assigned_operations += task.counted_operations;
  assigned_fetch_bytes += fetch_bytes;
}

void NodeRecord::count_served(Task& task) {
  assigned_fetch_bytes -= std::min(assigned_fetch_bytes, task.counted_fetch_bytes);
  task.counted_fetch_bytes = 0;
}

void NodeRecord::uncount(Task& task) {
  count_served(task);
  assigned_operations -= task.counted_operations;
  task.counted_operations = 0;
  if (held.empty()) assigned_operations = 0;  // what rounding left
}

Result<NodeRecord*> Registry::add(const NodeFacts& facts) {
  auto slot = slots_.find(facts.name);
  if (slot == slots_.end()) {
    std::set<uint32_t> taken;
    for (const auto& [name, number] : slots_) taken.insert(number);
    uint32_t free = 0;
    while (taken.contains(free)) ++free;
    if (free >= kMaxNodes)
      return fail(ErrorCode::kExhausted,
                  fmt::format("node '{}': the cluster is full, it has known {} nodes", facts.name,
                              kMaxNodes));
    slot = slots_.emplace(facts.name, free).first;
  }
  auto& record = nodes_[facts.name];
  record.facts = facts;
  record.slot = slot->second;
  return &record;
}

std::vector<std::string> Registry::known_names() const {
  std::vector<std::string> names;
  for (const auto& [name, slot] : slots_) names.push_back(name);
  return names;
}

NodeRecord& Registry::expect(const std::string& name, uint64_t instance, int64_t lease_end_ns) {
  auto& record = nodes_[name];
  record.facts.name = name;
  record.facts.instance = instance;
  record.life = NodeLife::kExpected;
  record.lease_end_ns = lease_end_ns;
  if (const auto slot = slots_.find(name); slot != slots_.end()) record.slot = slot->second;
  return record;
}

NodeRecord* Registry::find(const std::string& name) {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

const NodeRecord* Registry::find(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

uint32_t Registry::busy_units() const {
  uint32_t busy = 0;
  for (const auto& [name, node] : nodes_)
    if (node.life == NodeLife::kUp) busy += node.running_units;
  return busy;
}

uint32_t Registry::total_units() const {
  uint32_t total = 0;
  for (const auto& [name, node] : nodes_)
    if (node.life == NodeLife::kUp) total += node.facts.units;
  return total;
}

uint32_t Registry::up_count() const {
  return static_cast<uint32_t>(std::count_if(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    return entry.second.life == NodeLife::kUp;
  }));
}

double Registry::int32_to_float() const {
  double sum = 0;
  int count = 0;
  for (const auto& [name, node] : nodes_)
    if (node.life == NodeLife::kUp) {
      sum += node.facts.int32_to_float;
      ++count;
    }
  return count ? sum / count : 1.0;
}

}  // namespace tierpilot

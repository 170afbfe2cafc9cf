#include "coordinator/core/nodes/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "policies/scheduling/shortlist.h"
#include "policies/scheduling/speed_class.h"

namespace tierpilot {
namespace {

int class_of(const NodeRecord& node) {
  return speed_class(node.operations.per_s());
}

}  // namespace

Result<NodeRecord*> Registry::add(const NodeFacts& facts) {
  const auto slot = slots_.take(facts.name);
  if (!slot)
    return fail(ErrorCode::kExhausted,
                fmt::format("node '{}': the cluster is full, it has {} nodes", facts.name,
                            NodeSlots::kMost));
  auto& record = nodes_[facts.name];
  record.facts = facts;
  record.slot = *slot;
  if (const auto order = orders_.find(facts.name); order != orders_.end())
    record.order = order->second;
  look_anew();
  return &record;
}

bool Registry::knows_all_shapes() const {
  return std::all_of(slots_.all().begin(), slots_.all().end(), [&](const auto& known) {
    const auto* node = find(known.first);
    return node && node->facts.units > 0;
  });
}

NodeRecord& Registry::expect(const std::string& name, uint64_t instance, int64_t lease_end_ns) {
  auto& record = nodes_[name];
  record.facts.name = name;
  record.facts.instance = instance;
  record.life = NodeLife::kExpected;
  record.lease_end_ns = lease_end_ns;
  if (const auto order = orders_.find(name); order != orders_.end()) record.order = order->second;
  if (const auto slot = slots_.find(name)) record.slot = *slot;
  look_anew();
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

void Registry::assign(NodeRecord& node, AttemptId attempt, uint32_t units,
                      uint64_t swap_room_bytes) {
  node.held.insert(attempt);
  node.assigned_swap_bytes += swap_room_bytes;
  change_place(node, [&] { node.assigned_units += units; });
}

void Registry::run(NodeRecord& node, uint32_t units) {
  node.running_units += units;
  if (summary_ && node.life == NodeLife::kUp) summary_->busy_units += units;
}

bool Registry::release(NodeRecord& node, AttemptId attempt, uint32_t units, bool running,
                       uint64_t swap_room_bytes) {
  if (!node.held.erase(attempt)) return false;
  node.assigned_swap_bytes -= swap_room_bytes;
  change_place(node, [&] { node.assigned_units -= units; });
  if (!running) return true;
  node.running_units -= units;
  if (summary_ && node.life == NodeLife::kUp) summary_->busy_units -= units;
  return true;
}

void Registry::set_life(NodeRecord& node, NodeLife life) {
  node.life = life;
  look_anew();
}

void Registry::set_order(const std::string& name, const NodeOrder& order) {
  if (order.kind == NodeOrder::Kind::kNone)
    orders_.erase(name);
  else
    orders_[name] = order;
  if (auto* node = find(name)) node->order = order;
  look_anew();
}

void Registry::remove(const std::string& name) {
  constexpr size_t kMostRemoved = 256;  // a view of them lives for milliseconds
  slots_.forget(name);
  orders_.erase(name);
  if (auto node = nodes_.extract(name)) removed_.push_back(std::move(node));
  if (removed_.size() > kMostRemoved) removed_.pop_front();
  look_anew();
}

bool ByLoad::operator()(const NodeRecord* a, const NodeRecord* b) const {
  const auto load = [](const NodeRecord* node) {
    return assigned_load(node->assigned_units, node->facts.units);
  };
  return std::pair(load(a), a->slot) < std::pair(load(b), b->slot);
}

const NodesBySpeed& Registry::up_by_speed(uint32_t backlog_units) const {
  if (ordered_for_ == backlog_units) return up_by_speed_;
  ordered_for_ = backlog_units;
  up_by_speed_.clear();
  for (const NodeRecord* node : up()) {
    SpeedClass& alike = up_by_speed_[class_of(*node)];
    ++alike.nodes;
    if (has_room(*node)) alike.with_room.insert(node);
  }
  return up_by_speed_;
}

template <class Change>
void Registry::change_place(NodeRecord& node, Change change) {
  if (!ordered_for_ || node.life != NodeLife::kUp) return change();
  const auto before = up_by_speed_.find(class_of(node));
  auto place = before->second.with_room.extract(&node);
  --before->second.nodes;
  change();
  SpeedClass& alike = up_by_speed_[class_of(node)];
  ++alike.nodes;
  if (has_room(node)) {
    if (place)
      alike.with_room.insert(std::move(place));
    else
      alike.with_room.insert(&node);
  }
  if (before->second.nodes == 0) up_by_speed_.erase(before);
}

void Registry::ran(NodeRecord& node, double operations, double seconds) {
  if (!(operations > 0) || !(seconds > 0)) return;
  WorkRate now = node.operations;
  now.add(believable_operations(operations, seconds), seconds);
  if (speed_class(now.per_s()) == class_of(node))
    node.operations = now;
  else
    change_place(node, [&] { node.operations = now; });
}

// Many may join at once.
void Registry::look_anew() {
  summary_.reset();
  up_by_speed_.clear();
  ordered_for_.reset();
}

const Registry::Summary& Registry::summary() const {
  if (summary_) return *summary_;
  Summary& all = summary_.emplace();
  double sum_of_costs = 0;
  for (const auto& [name, node] : nodes_) {
    if (node.facts.units > 0) all.known_shapes.add(node.facts.resources());
    for (const auto& unit : node.facts.shared_units)
      all.shared_shapes[unit.engine()].add(node.facts.resources_of(unit));
    if (node.life != NodeLife::kUp) continue;
    all.up.push_back(&node);
    if (!node.is_closed()) all.up_shapes.add(node.facts.resources());
    all.busy_units += node.running_units;
    all.total_units += node.facts.units;
    sum_of_costs += node.facts.int32_to_float;
  }
  if (!all.up.empty()) all.int32_to_float = sum_of_costs / static_cast<double>(all.up.size());
  std::sort(all.up.begin(), all.up.end(),
            [](const NodeRecord* a, const NodeRecord* b) { return a->slot < b->slot; });
  return all;
}

}  // namespace tierpilot

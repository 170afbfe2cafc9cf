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

NodeShape shape_of(const NodeFacts& facts) {
  return {facts.units, facts.memory_bytes, facts.fast_budget_bytes};
}

void NodeShapes::add(const NodeShape& shape) {
  if (hold(shape)) return;
  std::erase_if(shapes_, [&](const NodeShape& other) { return shape.holds(other); });
  shapes_.push_back(shape);
}

bool NodeShapes::hold(const NodeShape& needed) const {
  return std::any_of(shapes_.begin(), shapes_.end(),
                     [&](const NodeShape& shape) { return shape.holds(needed); });
}

NodeShape NodeShapes::largest() const {
  NodeShape most;
  for (const auto& shape : shapes_)
    most = {std::max(most.units, shape.units), std::max(most.memory_bytes, shape.memory_bytes),
            std::max(most.fast_budget_bytes, shape.fast_budget_bytes)};
  return most;
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
    while (names_.contains(lowest_free_)) ++lowest_free_;
    if (lowest_free_ >= kMaxNodes)
      return fail(
          ErrorCode::kExhausted,
          fmt::format("node '{}': the cluster is full, it has {} nodes", facts.name, kMaxNodes));
    remember_slot(facts.name, lowest_free_);
    slot = slots_.find(facts.name);
  }
  auto& record = nodes_[facts.name];
  record.facts = facts;
  record.slot = slot->second;
  if (const auto order = orders_.find(facts.name); order != orders_.end())
    record.order = order->second;
  look_who_is_up();
  return &record;
}

void Registry::remember_slot(const std::string& name, uint32_t slot) {
  forget_slot(name);
  slots_[name] = slot;
  names_[slot] = name;
}

void Registry::forget_slot(const std::string& name) {
  const auto slot = slots_.extract(name);
  if (!slot) return;
  names_.erase(slot.mapped());
  lowest_free_ = std::min(lowest_free_, slot.mapped());
}

std::vector<std::string> Registry::known_names() const {
  std::vector<std::string> names;
  for (const auto& [name, slot] : slots_) names.push_back(name);
  return names;
}

bool Registry::knows_all_shapes() const {
  return std::all_of(slots_.begin(), slots_.end(), [&](const auto& known) {
    const auto* node = find(known.first);
    return node && node->facts.units > 0;
  });
}

std::string Registry::name_of(uint32_t slot) const {
  const auto found = names_.find(slot);
  return found == names_.end() ? std::string() : found->second;
}

NodeRecord& Registry::expect(const std::string& name, uint64_t instance, int64_t lease_end_ns) {
  auto& record = nodes_[name];
  record.facts.name = name;
  record.facts.instance = instance;
  record.life = NodeLife::kExpected;
  record.lease_end_ns = lease_end_ns;
  if (const auto order = orders_.find(name); order != orders_.end()) record.order = order->second;
  if (const auto slot = slots_.find(name); slot != slots_.end()) record.slot = slot->second;
  look_who_is_up();
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

void Registry::assign(NodeRecord& node, AttemptId attempt, uint32_t units) {
  node.held.insert(attempt);
  change_place(node, [&] { node.assigned_units += units; });
}

void Registry::run(NodeRecord& node, uint32_t units) {
  node.running_units += units;
  if (summary_ && node.life == NodeLife::kUp) summary_->busy_units += units;
}

bool Registry::release(NodeRecord& node, AttemptId attempt, uint32_t units, bool running) {
  if (!node.held.erase(attempt)) return false;
  change_place(node, [&] { node.assigned_units -= units; });
  if (!running) return true;
  node.running_units -= units;
  if (summary_ && node.life == NodeLife::kUp) summary_->busy_units -= units;
  return true;
}

void Registry::set_life(NodeRecord& node, NodeLife life) {
  node.life = life;
  look_who_is_up();
}

void Registry::set_order(const std::string& name, const NodeOrder& order) {
  if (order.kind == NodeOrder::Kind::kNone)
    orders_.erase(name);
  else
    orders_[name] = order;
  if (auto* node = find(name)) node->order = order;
  look_who_is_up();
}

void Registry::remove(const std::string& name) {
  constexpr size_t kMostRemoved = 256;  // a view of them lives for milliseconds
  forget_slot(name);
  orders_.erase(name);
  if (auto node = nodes_.extract(name)) removed_.push_back(std::move(node));
  if (removed_.size() > kMostRemoved) removed_.pop_front();
  look_who_is_up();
}

std::string NodeRecord::closed_because() const {
  if (!takes_none.empty()) return takes_none;
  switch (order.kind) {
    case NodeOrder::Kind::kCordoned:
      return fmt::format("cordoned by {}: it gets no new tasks", order.who);
    case NodeOrder::Kind::kDrained:
      return tasks_left() == 0
                 ? fmt::format("drained by {}: no task is left on it", order.who)
                 : fmt::format("drained by {}: {} tasks are left on it", order.who, tasks_left());
    case NodeOrder::Kind::kNone:
      break;
  }
  return health.why();
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
void Registry::look_who_is_up() {
  summary_.reset();
  up_by_speed_.clear();
  ordered_for_.reset();
}

const Registry::Summary& Registry::summary() const {
  if (summary_) return *summary_;
  Summary& all = summary_.emplace();
  for (const auto& [name, node] : nodes_) {
    if (node.facts.units > 0) all.known_shapes.add(shape_of(node.facts));
    if (node.life != NodeLife::kUp) continue;
    all.up.push_back(&node);
    if (!node.is_closed()) all.up_shapes.add(shape_of(node.facts));
    all.busy_units += node.running_units;
    all.total_units += node.facts.units;
    all.int32_to_float += node.facts.int32_to_float;
  }
  std::sort(all.up.begin(), all.up.end(),
            [](const NodeRecord* a, const NodeRecord* b) { return a->slot < b->slot; });
  return all;
}

}  // namespace tierpilot

#include "policies/sim/view/cluster_view.h"

#include <algorithm>
#include <utility>

#include "policies/scheduling/speed_class.h"

namespace tierpilot::sim {
namespace {

// A cluster's type that no task asks for.
constexpr uint16_t kUnaskedType = kAnyGpuType - 1;

uint16_t type_index(const Workload& workload, const std::string& name) {
  const auto& types = workload.gpu_types;
  const auto found = std::find(types.begin(), types.end(), name);
  return found == types.end() ? kUnaskedType : static_cast<uint16_t>(found - types.begin());
}

NodeState initial_state(const NodeGroup& group, uint32_t slot) {
  NodeState state;
  state.slot = slot;
  state.units = group.units;
  state.free_fast_bytes = state.fast_budget_bytes = group.fast_budget_bytes;
  state.gpu_milli = group.gpus * Gpus::kWhole;
  // What a node measures of its tiers. The others are learnt from its tasks.
  state.rates.fast_bytes_per_s = group.tiers.fast_read_bytes_per_s;
  state.rates.promote_bytes_per_s = group.tiers.promote_bytes_per_s;
  state.rates.evict_bytes_per_s = group.tiers.evict_bytes_per_s;
  return state;
}

}  // namespace

ClusterView::ClusterView(const ClusterSpec& cluster, const Workload& workload,
                         const ReplicaStore& store, bool shows_full)
    : workload_(workload),
      store_(store),
      backlog_units_(cluster.coordinator.backlog_units),
      considered_nodes_(cluster.coordinator.considered_nodes),
      shows_full_(shows_full),
      places_(cluster.node_count()),
      by_load_(cluster.node_count()),
      chosen_(cluster.node_count()),
      at_hand_(cluster.node_count()) {
  shapes_.reserve(kShapesKept);
  for (const NodeGroup& group : cluster.groups) {
    smallest_budget_ = std::min(smallest_budget_, group.fast_budget_bytes);
    for (uint32_t i = 0; i < group.count; ++i) {
      parked_.push_back(initial_state(group, static_cast<uint32_t>(nodes_.size())));
      gpus_.emplace_back(group.gpus);
      nodes_.push_back({&group, type_index(workload, group.gpu_type), WorkRate(), WorkRate()});
    }
  }
  rebuild();
}

uint64_t ClusterView::data_bytes(const Task& task) const {
  uint64_t bytes = 0;
  for (const auto& use : workload_.uses_of(task)) bytes += store_.bytes(use.dataset);
  return bytes;
}

ClusterView::Shape ClusterView::shape_of(const Task& task, uint64_t data_bytes) const {
  return {task.units, task.gpu_milli, task.gpu_type, task.memory_bytes,
          data_bytes > smallest_budget_ ? data_bytes : 0};
}

bool ClusterView::has_kind(const Node& node, const Shape& shape) const {
  const NodeGroup& group = *node.group;
  return NodeShape{group.units, group.memory_bytes, group.fast_budget_bytes}.holds(
             {shape.units, shape.memory_bytes, shape.data_bytes}) &&
         Gpus::whole_gpus(shape.gpu_milli) <= group.gpus &&
         (shape.gpu_milli == 0 || shape.gpu_type == kAnyGpuType || shape.gpu_type == node.gpu_type);
}

bool ClusterView::can_take(uint32_t node, const Shape& shape) const {
  const NodeState& state = view_.nodes[places_[node]];
  return has_kind(nodes_[node], shape) &&
         has_units_left(state.assigned, state.units, backlog_units_, shape.units) &&
         (shape.gpu_milli == 0 || gpus_[node].fits(shape.gpu_milli));
}

bool ClusterView::can_ever_take(const Task& task) const {
  const Shape shape = shape_of(task, data_bytes(task));
  // Nodes of a group are alike.
  for (size_t i = 0; i < nodes_.size(); ++i)
    if ((i == 0 || nodes_[i].group != nodes_[i - 1].group) && has_kind(nodes_[i], shape))
      return true;
  return false;
}

size_t ClusterView::show(const Task& task) {
  clear_held();
  TaskFeatures& features = view_.task;
  features = {
      .operations = task.told_operations(), .units = task.units, .gpu_milli = task.gpu_milli};
  features.data_bytes = data_bytes(task);
  for (const auto& use : workload_.uses_of(task)) features.writes = features.writes || use.write;
  select(shape_of(task, features.data_bytes));
  const size_t candidates = shown_->nodes.size();
  if (candidates == 0) return 0;
  find_holders(task);
  if (is_large())
    shorten();
  else
    for (const uint32_t node : holders_) tell_held(node);
  return candidates;
}

void ClusterView::find_holders(const Task& task) {
  for (const auto& use : workload_.uses_of(task)) {
    const uint64_t bytes = store_.bytes(use.dataset);
    for (const auto& holder : store_.holders(use.dataset)) {
      if (places_[holder.node] == kNone) continue;
      AtHand& here = at_hand_[holder.node];
      (holder.fast ? here.fast_bytes : here.slow_bytes) += bytes;
      if (!std::exchange(here.listed, true)) holders_.push_back(holder.node);
    }
  }
}

void ClusterView::select(const Shape& shape) {
  ++shows_;
  if (!shown_ || shown_->shape != shape) {
    const auto known =
        std::find_if(shapes_.begin(), shapes_.end(),
                     [&](const Candidates& candidates) { return candidates.shape == shape; });
    shown_ = known != shapes_.end() ? &*known : &add_shape(shape);
    // A large cluster's nodes are shown by way of the set.
    for (size_t place = 0; place < order_.size() && !is_large(); ++place) mark(place);
  }
  shown_->shown = shows_;
}

ClusterView::Candidates& ClusterView::add_shape(const Shape& shape) {
  if (shapes_.size() < kShapesKept) {
    shapes_.push_back({shape, NodeSet(nodes_.size())});
  } else {
    const auto oldest = std::min_element(
        shapes_.begin(), shapes_.end(),
        [](const Candidates& a, const Candidates& b) { return a.shown < b.shown; });
    std::rotate(oldest, oldest + 1, shapes_.end());
    shapes_.back().shape = shape;
    shapes_.back().nodes.clear();
  }
  for (const uint32_t node : order_) shapes_.back().nodes.set(node, can_take(node, shape));
  return shapes_.back();
}

void ClusterView::mark(size_t place) {
  const uint32_t node = order_[place];
  NodeState& state = view_.nodes[place];
  state.candidate = shown_->nodes.contains(node);
  state.full = shows_full_ && !state.candidate && has_kind(nodes_[node], shown_->shape);
}

void ClusterView::tell_held(uint32_t node) {
  NodeState& state = view_.nodes[places_[node]];
  state.held_fast_bytes = at_hand_[node].fast_bytes;
  state.held_slow_bytes = at_hand_[node].slow_bytes;
  told_.push_back(node);
}

void ClusterView::clear_held() {
  for (const uint32_t node : told_) {
    NodeState& state = view_.nodes[places_[node]];
    state.held_fast_bytes = state.held_slow_bytes = 0;
    if (!is_large()) continue;
    state.candidate = true;
    state.full = false;
  }
  told_.clear();
  for (const uint32_t node : holders_) at_hand_[node] = {};
  holders_.clear();
}

void ClusterView::refresh(uint32_t node) {
  NodeState& state = view_.nodes[places_[node]];
  for (Candidates& candidates : shapes_)
    candidates.nodes.set(node, can_take(node, candidates.shape));
  if (is_large())
    by_load_.set(node, speed_class(state.rates.operations_per_s),
                 assigned_load(state.assigned, state.units));
  else if (shown_)
    mark(places_[node]);
}

Gpus::Mask ClusterView::assign(uint32_t node, const Task& task, uint64_t missing_bytes) {
  NodeState& state = view_.nodes[places_[node]];
  state.assigned += task.units;
  state.assigned_operations += task.told_operations() * task.units;
  state.assigned_fetch_bytes += missing_bytes;
  const Gpus::Mask gpus = task.gpu_milli ? gpus_[node].take(task.gpu_milli) : 0;
  if (task.gpu_milli) state.free_gpu_milli = gpus_[node].free_milli();
  refresh(node);
  return gpus;
}

void ClusterView::served(uint32_t index, uint64_t missing_bytes, const Service& service) {
  Node& node = nodes_[index];
  NodeState& state = view_.nodes[places_[index]];
  state.assigned_fetch_bytes -= missing_bytes;
  const auto fetched_bytes = static_cast<double>(service.fetched_bytes);
  const double fetch_s = static_cast<double>(service.fetch_ns) / 1e9;
  node.fetches.add(fetched_bytes, fetch_s);
  pace_.fetched(fetched_bytes, fetch_s);
  state.rates.fetch_bytes_per_s = node.fetches.per_s();
}

void ClusterView::succeeded(uint32_t index, const Task& task, double run_s) {
  Node& node = nodes_[index];
  node.operations.add(task.told_operations(), run_s);
  pace_.ran(task.told_operations(), run_s);
  // It goes to its speed class when the task is released, which comes next.
  view_.nodes[places_[index]].rates.operations_per_s = node.operations.per_s();
}

void ClusterView::started(uint32_t node, const Task& task) {
  view_.nodes[places_[node]].running += task.units;
  busy_units_ += task.units;
}

void ClusterView::release(uint32_t node, const Task& task, const Held& held) {
  NodeState& state = view_.nodes[places_[node]];
  state.assigned -= task.units;
  // Sums of doubles do not come back to 0 by themselves.
  state.assigned_operations =
      state.assigned == 0
          ? 0
          : std::max(0.0, state.assigned_operations - task.told_operations() * task.units);
  state.assigned_fetch_bytes -= held.missing_bytes;
  if (held.running) {
    state.running -= task.units;
    busy_units_ -= task.units;
  }
  if (task.gpu_milli) {
    gpus_[node].give(held.gpus, task.gpu_milli);
    state.free_gpu_milli = gpus_[node].free_milli();
  }
  refresh(node);
}

void ClusterView::set_held(uint32_t node, HeldTasks::Load load) {
  if (places_[node] == kNone) return;
  NodeState& state = view_.nodes[places_[node]];
  state.held_units = load.units;
  state.held_operations = load.operations;
}

void ClusterView::room_changed(uint32_t node) {
  const uint32_t place = places_[node];
  if (place == kNone) return;
  const TierAccount& fast = store_.cache(node).fast;
  view_.nodes[place].free_fast_bytes = fast.budget() - std::min(fast.used(), fast.budget());
}

void ClusterView::node_down(uint32_t node) {
  clear_held();
  parked_[node] = view_.nodes[places_[node]];
  places_[node] = kNone;
  rebuild();
}

void ClusterView::node_up(uint32_t node) {
  clear_held();
  places_[node] = 0;
  rebuild();
  room_changed(node);
}

void ClusterView::rebuild() {
  for (const uint32_t node : order_)
    if (places_[node] != kNone) parked_[node] = view_.nodes[places_[node]];
  view_.nodes.clear();
  order_.clear();
  total_units_ = 0;
  shapes_.clear();
  shown_ = nullptr;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    by_load_.remove(i);
    if (places_[i] == kNone) continue;
    places_[i] = static_cast<uint32_t>(order_.size());
    order_.push_back(i);
    view_.nodes.push_back(parked_[i]);
    view_.nodes.back().candidate = true;
    view_.nodes.back().full = false;
    view_.nodes.back().free_gpu_milli = gpus_[i].free_milli();
    total_units_ += nodes_[i].group->units;
  }
  for (const uint32_t node : order_) refresh(node);
}

void ClusterView::gpu_failed(uint32_t node, uint32_t gpu, bool failed) {
  gpus_[node].set_failed(gpu, failed);
  if (places_[node] == kNone) return;
  view_.nodes[places_[node]].free_gpu_milli = gpus_[node].free_milli();
  refresh(node);
}

}  // namespace tierpilot::sim

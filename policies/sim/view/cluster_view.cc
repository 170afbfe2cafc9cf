#include "policies/sim/view/cluster_view.h"

#include <algorithm>

#include "policies/scheduling/speed_class.h"

namespace tierpilot::sim {

ClusterView::ClusterView(const ClusterSpec& cluster, const Workload& workload,
                         const ReplicaStore& store, bool shows_full)
    : workload_(workload),
      store_(store),
      considered_nodes_(cluster.coordinator.considered_nodes),
      shows_full_(shows_full),
      nodes_(cluster, workload),
      candidates_(cluster.node_count()),
      at_hand_(cluster.node_count()),
      by_load_(cluster.node_count()),
      chosen_(cluster.node_count()) {
  for (const NodeGroup& group : cluster.groups)
    smallest_budget_ = std::min(smallest_budget_, group.fast_budget_bytes);
  refresh_all();
}

uint64_t ClusterView::data_bytes(const Task& task) const {
  uint64_t bytes = 0;
  for (const auto& use : workload_.uses_of(task)) bytes += store_.datasets().bytes(use.dataset);
  return bytes;
}

TaskShape ClusterView::shape_of(const Task& task, uint64_t data_bytes) const {
  uint64_t gang_bytes = data_bytes;
  if (task.gang != kNoGang)
    for (const DatasetUse& use : workload_.uses_of(task))
      if (use.write) gang_bytes += store_.datasets().bytes(use.dataset);
  return {.units = task.units,
          .gpu_milli = task.gpu_milli,
          .gpu_type = task.gpu_type,
          .memory_bytes = task.memory_bytes,
          .data_bytes = data_bytes > smallest_budget_ ? data_bytes : 0,
          .gang_data_bytes = gang_bytes > smallest_budget_ ? gang_bytes : 0};
}

bool ClusterView::can_ever_take(const Task& task) const {
  return nodes_.could_any_take(shape_of(task));
}

uint64_t ClusterView::missing_bytes(const Task& task, uint32_t node) const {
  uint64_t missing = 0;
  for (const DatasetUse& use : workload_.uses_of(task)) {
    const auto& holders = store_.datasets().holders(use.dataset);
    const bool here = std::any_of(holders.begin(), holders.end(), [&](const auto& holder) {
      return holder.node == node && holder.fast;
    });
    if (!here) missing += store_.datasets().bytes(use.dataset);
  }
  return missing;
}

size_t ClusterView::show(const Task& task) {
  clear_held();
  TaskFeatures& features = nodes_.view().task;
  features = {
      .operations = task.told_operations(), .units = task.units, .gpu_milli = task.gpu_milli};
  features.data_bytes = data_bytes(task);
  for (const auto& use : workload_.uses_of(task)) features.writes = features.writes || use.write;
  const bool changed = candidates_.select(
      shape_of(task, features.data_bytes), nodes_.up(),
      [&](uint32_t node, const TaskShape& shape) { return nodes_.can_take(node, shape); });
  // A large cluster's nodes are shown by way of the set.
  if (changed && !is_large())
    for (const uint32_t node : nodes_.up()) mark(node);
  const size_t candidates = candidates_.nodes().size();
  if (candidates == 0) return 0;
  at_hand_.find(store_, workload_.uses_of(task), [&](uint32_t node) { return nodes_.is_up(node); });
  if (is_large())
    shorten();
  else
    for (const uint32_t node : at_hand_.holders()) tell_held(node);
  return candidates;
}

void ClusterView::mark(uint32_t node) {
  NodeState& state = nodes_.state(node);
  state.candidate = candidates_.nodes().contains(node);
  state.full = shows_full_ && !state.candidate && nodes_.could_take(node, candidates_.shape());
}

void ClusterView::tell_held(uint32_t node) {
  NodeState& state = nodes_.state(node);
  state.held_fast_bytes = at_hand_.at(node).fast;
  state.held_slow_bytes = at_hand_.at(node).slow;
  told_.push_back(node);
}

void ClusterView::clear_held() {
  for (const uint32_t node : told_) {
    NodeState& state = nodes_.state(node);
    state.held_fast_bytes = state.held_slow_bytes = 0;
    if (!is_large()) continue;
    state.candidate = true;
    state.full = false;
  }
  told_.clear();
  at_hand_.clear();
}

void ClusterView::refresh(uint32_t node) {
  candidates_.update(
      node, [&](uint32_t its, const TaskShape& shape) { return nodes_.can_take(its, shape); });
  const NodeState& state = nodes_.state(node);
  if (is_large())
    by_load_.set(node, speed_class(state.rates.operations_per_s),
                 assigned_load(state.assigned, state.units));
  else if (candidates_.any_selected())
    mark(node);
}

void ClusterView::refresh_all() {
  candidates_.clear();
  by_load_.clear();
  for (const uint32_t node : nodes_.up()) refresh(node);
}

Gpus::Mask ClusterView::assign(uint32_t node, const Task& task, uint64_t missing_bytes) {
  const Gpus::Mask gpus = nodes_.assign(node, task, missing_bytes);
  refresh(node);
  return gpus;
}

void ClusterView::release(uint32_t node, const Task& task, const AttemptHeld& held) {
  nodes_.release(node, task, held);
  refresh(node);
}

void ClusterView::node_down(uint32_t node) {
  clear_held();
  nodes_.set_up(node, false);
  refresh_all();
}

void ClusterView::node_up(uint32_t node) {
  clear_held();
  nodes_.set_up(node, true);
  refresh_all();
  room_changed(node);
}

void ClusterView::gpu_failed(uint32_t node, uint32_t gpu, bool failed) {
  nodes_.set_gpu_failed(node, gpu, failed);
  if (nodes_.is_up(node)) refresh(node);
}

}  // namespace tierpilot::sim

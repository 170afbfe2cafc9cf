#include "policies/sim/view/node_states.h"

#include <algorithm>
#include <string>

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

NodeStates::NodeStates(const ClusterSpec& cluster, const Workload& workload)
    : backlog_units_(cluster.coordinator.backlog_units), places_(cluster.node_count()) {
  for (const NodeGroup& group : cluster.groups)
    for (uint32_t i = 0; i < group.count; ++i) {
      parked_.push_back(initial_state(group, static_cast<uint32_t>(nodes_.size())));
      gpus_.emplace_back(group.gpus);
      nodes_.push_back({&group, type_index(workload, group.gpu_type), WorkRate(), WorkRate()});
    }
  rebuild();
}

bool NodeStates::could_any_take(const TaskShape& shape) const {
  // Nodes of a group are alike.
  for (uint32_t i = 0; i < nodes_.size(); ++i)
    if ((i == 0 || nodes_[i].group != nodes_[i - 1].group) && could_take(i, shape)) return true;
  return false;
}

bool NodeStates::can_take(uint32_t node, const TaskShape& shape) const {
  const NodeState& its = state(node);
  return could_take(node, shape) &&
         has_units_left(its.assigned, its.units, backlog_units_, shape.units) &&
         (shape.gpu_milli == 0 || gpus_[node].fits(shape.gpu_milli));
}

uint32_t NodeStates::ranks_now(uint32_t node, const TaskShape& shape) const {
  const NodeState& its = state(node);
  if (!could_take(node, shape) || its.assigned >= its.units) return 0;
  const uint32_t ranks =
      std::min((its.units - its.assigned) / shape.units, ranks_ever(node, shape));
  return shape.gpu_milli == 0 ? ranks : std::min(ranks, gpus_[node].times(shape.gpu_milli));
}

uint32_t NodeStates::ranks_ever(uint32_t node, const TaskShape& shape) const {
  if (!could_take(node, shape)) return 0;
  const NodeGroup& group = *nodes_[node].group;
  // Shares of GPUs are counted by thousandths.
  const uint64_t ranks =
      group.resources().times({shape.units, 0, shape.memory_bytes, shape.data_bytes});
  const uint32_t by_gpus =
      shape.gpu_milli == 0 ? UINT32_MAX : Gpus(group.gpus).times(shape.gpu_milli);
  // All have to have their data before any of them begins.
  const uint32_t by_data = shape.gang_data_bytes > group.fast_budget_bytes ? 1 : UINT32_MAX;
  return static_cast<uint32_t>(std::min<uint64_t>({ranks, by_gpus, by_data}));
}

Gpus::Mask NodeStates::assign(uint32_t node, const Task& task, uint64_t missing_bytes) {
  NodeState& its = state(node);
  its.assigned += task.units;
  its.assigned_operations += task.told_operations() * task.units;
  its.assigned_fetch_bytes += missing_bytes;
  const Gpus::Mask gpus = task.gpu_milli ? gpus_[node].take(task.gpu_milli) : 0;
  if (task.gpu_milli) its.free_gpu_milli = gpus_[node].free_milli();
  return gpus;
}

void NodeStates::served(uint32_t index, uint64_t missing_bytes, const Service& service) {
  Node& node = nodes_[index];
  NodeState& its = state(index);
  its.assigned_fetch_bytes -= missing_bytes;
  const auto fetched_bytes = static_cast<double>(service.fetched_bytes);
  const double fetch_s = static_cast<double>(service.fetch_ns) / 1e9;
  node.fetches.add(fetched_bytes, fetch_s);
  pace_.fetched(fetched_bytes, fetch_s);
  its.rates.fetch_bytes_per_s = node.fetches.per_s();
}

void NodeStates::succeeded(uint32_t index, const Task& task, double run_s) {
  Node& node = nodes_[index];
  node.operations.add(task.told_operations(), run_s);
  pace_.ran(task.told_operations(), run_s);
  // It goes to its speed class when the task is released, which comes next.
  state(index).rates.operations_per_s = node.operations.per_s();
}

void NodeStates::started(uint32_t node, const Task& task) {
  state(node).running += task.units;
  busy_units_ += task.units;
}

void NodeStates::release(uint32_t node, const Task& task, const AttemptHeld& held) {
  NodeState& its = state(node);
  its.assigned -= task.units;
  // Sums of doubles do not come back to 0 by themselves.
  its.assigned_operations =
      its.assigned == 0
          ? 0
          : std::max(0.0, its.assigned_operations - task.told_operations() * task.units);
  its.assigned_fetch_bytes -= held.missing_bytes;
  if (held.running) {
    its.running -= task.units;
    busy_units_ -= task.units;
  }
  if (task.gpu_milli) {
    gpus_[node].give(held.gpus, task.gpu_milli);
    its.free_gpu_milli = gpus_[node].free_milli();
  }
}

void NodeStates::set_held(uint32_t node, HeldTasks::Load load) {
  if (!is_up(node)) return;
  state(node).held_units = load.units;
  state(node).held_operations = load.operations;
}

void NodeStates::set_fast(uint32_t node, const TierAccount& fast) {
  if (is_up(node))
    state(node).free_fast_bytes = fast.budget() - std::min(fast.used(), fast.budget());
}

void NodeStates::set_gpu_failed(uint32_t node, uint32_t gpu, bool failed) {
  gpus_[node].set_failed(gpu, failed);
  if (is_up(node)) state(node).free_gpu_milli = gpus_[node].free_milli();
}

void NodeStates::set_up(uint32_t node, bool up) {
  if (!up) parked_[node] = state(node);
  places_[node] = up ? 0 : kNone;
  rebuild();
}

void NodeStates::rebuild() {
  for (const uint32_t node : up_)
    if (is_up(node)) parked_[node] = state(node);
  view_.nodes.clear();
  up_.clear();
  total_units_ = 0;
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    if (!is_up(node)) continue;
    places_[node] = static_cast<uint32_t>(up_.size());
    up_.push_back(node);
    NodeState& its = view_.nodes.emplace_back(parked_[node]);
    its.candidate = true;
    its.full = false;
    its.free_gpu_milli = gpus_[node].free_milli();
    total_units_ += nodes_[node].group->units;
  }
}

}  // namespace tierpilot::sim

// What failing nodes and GPUs do to the tasks there.
#include <algorithm>
#include <cmath>

#include "policies/sim/simulation.h"

namespace tierpilot::sim {

void Simulation::detach(uint32_t task) {
  State& state = states_[task];
  if (state.phase == Phase::kReady) engines_.forget_ready(state.node, task);
  if (state.phase == Phase::kRunning) {
    const double ran_s = engines_.ran_s(now_ns_, state.node, task, state.started_ns);
    engines_.end(now_ns_, state.node, task, workload_.tasks[task].units);
    const Checkpoints& checkpoints = cluster_.checkpoints;
    const NodeGroup& group = engines_.group(state.node);
    double worked_s = ran_s - group.launch_s;
    if (state.attempt > 1) worked_s -= checkpoints.restart_s;
    if (checkpoints.interval_s > 0 && worked_s > 0)
      state.done_operations +=
          std::floor(worked_s / (checkpoints.interval_s + checkpoints.cost_s)) *
          checkpoints.interval_s * group.operations_per_s;
  }
  data_.abandon(now_ns_, task);
  release(task);
}

void Simulation::lose(uint32_t task, double seconds) {
  detach(task);
  states_[task].phase = Phase::kLost;
  events_.push(after_s(now_ns_, seconds), EventKind::kLost, task, ++states_[task].generation);
}

void Simulation::node_failed(uint32_t node) {
  ++recorder_.counts.node_failures;
  while (!held_[node].empty()) lose(held_[node].back(), cluster_.coordinator.lease_s);
  wake_those_held_for(node);
  store_.node_failed(node);
  view_.node_down(node);
  data_.source_failed(now_ns_, node);
  work_available_ = true;  // what needs lost data fails
}

void Simulation::node_repaired(uint32_t node) {
  store_.node_repaired(node);
  view_.node_up(node);
  work_available_ = true;
}

void Simulation::gpu_failed(uint32_t node, uint32_t gpu) {
  ++recorder_.counts.gpu_failures;
  const auto held = held_[node];
  for (const uint32_t task : held)
    if (states_[task].gpus >> gpu & 1) lose(task, cluster_.coordinator.report_s);
  view_.gpu_failed(node, gpu, true);
  data_.resume(now_ns_, node);
  launch_ready(node);
  work_available_ = true;
}

}  // namespace tierpilot::sim

// What failing nodes and GPUs do to the tasks there.
#include "policies/sim/simulation.h"

namespace tierpilot::sim {

void Simulation::handle_failure(const Event& event) {
  const uint32_t gpu = Failures::gpu_of(event.subject);
  const uint32_t node = Failures::node_of(event.subject);  // where it is a GPU
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::kNodeFailed:
      return node_failed(event.subject);
    case EventKind::kNodeRepaired:
      return node_repaired(event.subject);
    case EventKind::kGpuFailed:
      return gpu_failed(node, gpu);
    case EventKind::kGpuRepaired:
      return gpu_repaired(node, gpu);
    default:
      return;
  }
}

void Simulation::lose(uint32_t task, double seconds) {
  const Gang* gang = gangs_.of(task);
  if (gang) {
    cut_off_gang(*gang, table_[task].node);
    task = gang->first;
  } else {
    attempts_.cut_off(now_ns_, task);
    dispatcher_.released(task, table_[task].node);
    table_[task].phase = TaskPhase::kLost;
  }
  events_.push(after_s(now_ns_, seconds), EventKind::kLost, task, table_.renew(task));
}

void Simulation::node_failed(uint32_t node) {
  outcomes_.node_failed();
  const auto& attempts = table_.at(node);
  while (!attempts.empty()) lose(attempts.back(), cluster_.coordinator.lease_s);
  dispatcher_.node_failed(node);
  store_.node_failed(node);
  view_.node_down(node);
  attempts_.data().source_failed(now_ns_, node);
}

void Simulation::node_repaired(uint32_t node) {
  store_.node_repaired(node);
  view_.node_up(node);
  dispatcher_.room_grew();
}

void Simulation::gpu_failed(uint32_t node, uint32_t gpu) {
  outcomes_.gpu_failed();
  const auto attempts = table_.at(node);  // losing one changes the table's
  for (const uint32_t task : attempts)
    if (table_[task].phase != TaskPhase::kLost && table_[task].gpus >> gpu & 1)
      lose(task, cluster_.coordinator.report_s);
  view_.gpu_failed(node, gpu, true);
  attempts_.resume(now_ns_, node);
  dispatcher_.look_again();
}

void Simulation::gpu_repaired(uint32_t node, uint32_t gpu) {
  view_.gpu_failed(node, gpu, false);
  dispatcher_.node_has_room(node);
}

}  // namespace tierpilot::sim

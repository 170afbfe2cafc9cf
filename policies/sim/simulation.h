// One run: events in their order, and what each of them leads to. Internal to the simulator.
#pragma once

#include <cstdint>
#include <memory>

#include "policies/sim/attempt_table.h"
#include "policies/sim/attempts.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/dispatcher.h"
#include "policies/sim/engines.h"
#include "policies/sim/events/event_queue.h"
#include "policies/sim/failures.h"
#include "policies/sim/gangs.h"
#include "policies/sim/look_ahead.h"
#include "policies/sim/outcomes.h"
#include "policies/sim/queue/queue_places.h"
#include "policies/sim/simulator.h"
#include "policies/sim/view/cluster_view.h"

namespace tierpilot::sim {

class Simulation final {
 public:
  Simulation(const ClusterSpec& cluster, const Workload& workload, Policy& policy,
             const RunOptions& options);
  // Once; see simulate().
  Result<RunResult> run();

 private:
  void arrive(uint32_t task);
  // How many real events it was: void ones do not count.
  uint64_t handle(const Event& event);
  void handle_task(const Event& event);
  void reported(uint32_t task);
  void queue_again(uint32_t task, bool counts);
  bool forgive(uint32_t task);
  void succeed(uint32_t task);

  void handle_failure(const Event& event);
  void node_failed(uint32_t node);
  void node_repaired(uint32_t node);
  void gpu_failed(uint32_t node, uint32_t gpu);
  void gpu_repaired(uint32_t node, uint32_t gpu);
  void lose(uint32_t task, double after_s);

  void rank_reported(uint32_t task, Verdict verdict);
  void cut_off_gang(const Gang& gang, uint32_t failed_node);

  const ClusterSpec& cluster_;
  const Workload& workload_;
  const RunOptions& options_;
  const bool looks_ahead_;

  EventQueue events_;
  ReplicaStore store_;
  ClusterView view_;
  Engines engines_;
  Failures failures_;
  Outcomes outcomes_;
  QueuePlaces places_;
  AttemptTable table_;
  Gangs gangs_;
  const std::unique_ptr<gang::Placer> own_placer_;  // null: the caller has one
  Attempts attempts_;
  Dispatcher dispatcher_;
  LookAhead look_ahead_;
  int64_t now_ns_ = 0;
};

}  // namespace tierpilot::sim

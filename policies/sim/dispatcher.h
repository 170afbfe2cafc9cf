// Asks the policy where waiting tasks go, one after the other, for as long as something has changed
// that may let one be placed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "policies/interface/policy.h"
#include "policies/sim/attempts.h"
#include "policies/sim/gangs.h"
#include "policies/sim/queue/dataset_writers.h"
#include "policies/sim/queue/gang_room.h"
#include "policies/sim/queue/kept_back_tasks.h"
#include "policies/sim/queue/waiting_tasks.h"

namespace tierpilot::sim {

class Dispatcher {
 public:
  Dispatcher(const ClusterSpec& cluster, const Workload& workload, Policy& policy,
             const ReplicaStore& store, QueuePlaces& places, ClusterView& view, AttemptTable& table,
             Gangs& gangs, Attempts& attempts, EventQueue& events, Outcomes& outcomes,
             gang::Placer& placer);

  size_t waiting() const { return waiting_.size(); }
  const DatasetWriters& writers() const { return writers_; }
  // Nodes could run the task, or all ranks of its gang, if there were nothing else to do.
  bool can_ever_run(uint32_t task) const;

  void enqueue(uint32_t task) {
    table_[task].phase = TaskPhase::kQueued;
    if (waiting_.insert(task)) look_again();
  }
  // Some task may be placed now, or given up.
  bool has_work() const { return has_work_; }
  void look_again() { has_work_ = true; }
  // Does it. kInvalid: the policy chose no candidate.
  Status work(int64_t now_ns);

  // The task's attempt at the node is over.
  void released(uint32_t task, uint32_t node);
  void node_has_room(uint32_t node);
  void room_grew();  // somewhere
  void node_failed(uint32_t node);
  void held_longest(uint32_t task);
  // See KeptBackTasks.
  std::optional<int64_t> take_first_asked_ns(uint32_t task) {
    return kept_back_.take_first_asked_ns(task);
  }

 private:
  Status decide(int64_t now_ns, uint32_t task);
  // False: there is no room for it, and nobody else may have any.
  bool place_gang(int64_t now_ns, const Gang& gang);
  void hold(int64_t now_ns, uint32_t task, const View& view, size_t full);
  void place(int64_t now_ns, uint32_t task, const View& view, size_t node);
  void give_up(uint32_t task);

  const Workload& workload_;
  Policy& policy_;
  const bool holds_;
  const int64_t gang_patience_ns_;
  ClusterView& view_;
  AttemptTable& table_;
  Gangs& gangs_;
  Attempts& attempts_;
  EventQueue& events_;
  Outcomes& outcomes_;
  QueuePlaces& places_;
  DatasetWriters writers_;
  KeptBackTasks kept_back_;
  WaitingTasks waiting_;
  GangRoom gang_room_;
  bool has_work_ = false;
};

// The policy may keep tasks back in this cluster.
inline bool may_hold_tasks(const ClusterSpec& cluster, const Policy& policy) {
  return policy.holds() && cluster.coordinator.hold_tasks;
}

}  // namespace tierpilot::sim

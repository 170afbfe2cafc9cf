// The tasks that wait for a node, and whose turn it is (policies/scheduling/queue_turns.h). What is
// known of the first of them is not looked at again: a run's queue may be long.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/scheduling/queue_turns.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/queue/blocked_head.h"
#include "policies/sim/queue/dataset_writers.h"
#include "policies/sim/queue/kept_back_tasks.h"
#include "policies/sim/queue/queue_places.h"
#include "policies/sim/queue/task_queue.h"
#include "policies/sim/view/node_states.h"

namespace tierpilot::sim {

class WaitingTasks {
 public:
  WaitingTasks(const ClusterSpec& cluster, const Workload& workload, const ReplicaStore& store,
               const NodeStates& nodes, const DatasetWriters& writers,
               const KeptBackTasks& kept_back, QueuePlaces& places);

  size_t size() const { return head_.size() + queue_.size(); }
  // False: none of those before it could be placed, and it would not be looked at.
  bool insert(uint32_t task);
  // The task whose turn it is; kNone: nobody's. It stays in the queue.
  uint32_t next();
  // Tasks that are in the queue no longer since the last next(), as their data is lost for good.
  const std::vector<uint32_t>& given_up() const { return given_up_; }
  // What becomes of the task that next() gave: it leaves the queue, or is kept back in it.
  void take_next() { head_.erase(next_); }
  void keep_next_back() { head_[next_].waits_for = BlockedHead::kHeld; }
  // A gang for which there is no room: others may overtake it.
  void pass_next() {
    head_[next_].waits_for = BlockedHead::kRoom;
    any_passed_ = true;
  }

  // A task that was kept back has to be looked at.
  void woken(uint64_t task) { head_.woken(places_.of(static_cast<uint32_t>(task))); }
  // There is more room: gangs have to be looked at.
  void room_grew() {
    if (any_passed_) head_.changed(BlockedHead::kRoom);
    any_passed_ = false;
  }
  // Nobody writes the dataset any more.
  void freed(uint32_t dataset);

 private:
  class Look;
  // As BlockedHead::Entry.
  uint32_t waits_for(uint32_t task) const;
  // See policies/scheduling/service_order.h.
  double far_s(uint32_t task) const;

  const ServiceOrder order_;
  const Workload& workload_;
  const ReplicaStore& store_;
  const NodeStates& nodes_;
  const DatasetWriters& writers_;
  const KeptBackTasks& kept_back_;
  QueuePlaces& places_;
  BlockedHead head_;
  TaskQueue queue_;  // beyond it
  QueueTurns turns_;
  bool any_passed_ = false;
  size_t next_ = 0;  // of the head's entries, the task that next() gave
  // Who stands before it was not there when the queue was last looked at.
  QueuePlace looked_until_{HUGE_VAL, UINT64_MAX};
  uint64_t availability_seen_ = 0;  // of the store, then
  std::vector<uint32_t> given_up_;
};

}  // namespace tierpilot::sim

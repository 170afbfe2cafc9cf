// The View of a cluster that a decision is shown: which nodes are candidates for its task, and what
// they hold of its data. Who is a candidate, and which nodes a decision looks at in a large
// cluster, say policies/scheduling/room.h and shortlist.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/interface/values.h"
#include "policies/scheduling/shortlist.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/model/workload.h"
#include "policies/sim/view/candidate_sets.h"
#include "policies/sim/view/data_at_hand.h"
#include "policies/sim/view/load_order.h"
#include "policies/sim/view/node_set.h"
#include "policies/sim/view/node_states.h"

namespace tierpilot::sim {

class ClusterView {
 public:
  // `shows_full`: views say which nodes are full; in a large cluster some that hold the data are
  // among them.
  ClusterView(const ClusterSpec& cluster, const Workload& workload, const ReplicaStore& store,
              bool shows_full);

  // For what changes nobody's being a candidate.
  NodeStates& nodes() { return nodes_; }
  const NodeStates& nodes() const { return nodes_; }

  // What of the task decides where it can be.
  TaskShape shape_of(const Task& task) const { return shape_of(task, data_bytes(task)); }
  // Some node could take the task if it were empty.
  bool can_ever_take(const Task& task) const;
  // Of the task's data, what the node does not have in its fast tier.
  uint64_t missing_bytes(const Task& task, uint32_t node) const;
  // Makes `view` the one of this task; the number of candidates.
  size_t show(const Task& task);
  const View& view() const { return is_large() ? short_ : nodes_.view(); }
  // The shown view is for a policy that may keep its task back.
  void allow_holding(bool may_hold) { (is_large() ? short_ : nodes_.view()).may_hold = may_hold; }

  // See NodeStates.
  Gpus::Mask assign(uint32_t node, const Task& task, uint64_t missing_bytes);
  void release(uint32_t node, const Task& task, const AttemptHeld& held);
  void room_changed(uint32_t node) { nodes_.set_fast(node, store_.cache(node).fast); }
  void node_down(uint32_t node);  // its tasks have been released
  void node_up(uint32_t node);
  void gpu_failed(uint32_t node, uint32_t gpu, bool failed);

 private:
  class Listing;

  uint64_t data_bytes(const Task& task) const;
  TaskShape shape_of(const Task& task, uint64_t data_bytes) const;
  bool is_large() const { return nodes_.up().size() > considered_nodes_; }
  void shorten();
  void tell_held(uint32_t node);
  void clear_held();
  void mark(uint32_t node);
  void refresh(uint32_t node);
  void refresh_all();

  const Workload& workload_;
  const ReplicaStore& store_;
  const uint32_t considered_nodes_;
  const bool shows_full_;
  uint64_t smallest_budget_ = UINT64_MAX;
  NodeStates nodes_;
  CandidateSets candidates_;
  DataAtHand at_hand_;          // of the shown task
  std::vector<uint32_t> told_;  // nodes whose states say what is at hand
  View short_;                  // what a decision in a large cluster looks at
  LoadOrder by_load_;
  NodeSet chosen_;                           // the short view's
  std::vector<DataHolder<uint32_t>> ranks_;  // of those that hold the data
};

}  // namespace tierpilot::sim

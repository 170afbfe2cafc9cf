// What the coordinator knows of the nodes, as policies see it: what they have been given, what runs
// there, what it has learnt of their speed. Only what has changed is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/large_pages.h"
#include "policies/interface/values.h"
#include "policies/scheduling/held_tasks.h"
#include "policies/scheduling/room.h"
#include "policies/scheduling/service_order.h"
#include "policies/scheduling/work_rate.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/model/service.h"
#include "policies/sim/model/workload.h"
#include "policies/sim/view/gpus.h"
#include "policies/sim/view/task_shape.h"

namespace tierpilot::sim {

// What a node loses with an attempt.
struct AttemptHeld {
  Gpus::Mask gpus = 0;
  uint64_t missing_bytes = 0;  // not served yet
  bool running = false;
};

class NodeStates {
 public:
  NodeStates(const ClusterSpec& cluster, const Workload& workload);

  // Some node could take it if it were empty.
  bool could_any_take(const TaskShape& shape) const;
  bool could_take(uint32_t node, const TaskShape& shape) const {
    return sim::could_take(*nodes_[node].group, nodes_[node].gpu_type, shape);
  }
  // The others: of nodes that are up.
  bool can_take(uint32_t node, const TaskShape& shape) const;
  // Ranks of a gang that need so much each, side by side: on what is idle, as the backlog is not
  // for them; and if the node had nothing else to do. The gang's first stands for all: it may
  // write.
  uint32_t ranks_now(uint32_t node, const TaskShape& shape) const;
  uint32_t ranks_ever(uint32_t node, const TaskShape& shape) const;
  bool is_up(uint32_t node) const { return places_[node] != kNone; }
  NodeState& state(uint32_t node) { return view_.nodes[places_[node]]; }
  const NodeGroup& group(uint32_t node) const { return *nodes_[node].group; }
  size_t size() const { return nodes_.size(); }
  const NodeState& state(uint32_t node) const { return view_.nodes[places_[node]]; }
  // For a task of one unit; of any node.
  bool has_room(uint32_t node) const {
    return is_up(node) && has_units_left(state(node).assigned, state(node).units, backlog_units_);
  }

  // A decision: the task is the node's until released. Gives its GPUs.
  Gpus::Mask assign(uint32_t node, const Task& task, uint64_t missing_bytes);
  void served(uint32_t node, uint64_t missing_bytes, const Service& service);
  void started(uint32_t node, const Task& task);
  // It ran for so long, from its launch to its end.
  void succeeded(uint32_t node, const Task& task, double run_s);
  void release(uint32_t node, const Task& task, const AttemptHeld& held);

  // Of any node.
  void set_held(uint32_t node, HeldTasks::Load load);
  void set_fast(uint32_t node, const TierAccount& fast);
  void set_gpu_failed(uint32_t node, uint32_t gpu, bool failed);
  // Its tasks have been released.
  void set_up(uint32_t node, bool up);

  // All nodes that are up, and their numbers.
  View& view() { return view_; }
  const View& view() const { return view_; }
  const std::vector<uint32_t>& up() const { return up_; }
  const ClusterPace& pace() const { return pace_; }
  uint64_t total_units() const { return total_units_; }
  double utilisation() const {
    return total_units_ ? static_cast<double>(busy_units_) / static_cast<double>(total_units_) : 0;
  }

  // Asks for memory that will be touched.
  void expect(uint32_t node) const {
    prefetch(nodes_[node]);
    if (is_up(node)) prefetch(state(node));
  }

 private:
  struct alignas(64) Node {  // a cache line, as everything that is touched for each task
    const NodeGroup* group;
    uint16_t gpu_type;
    WorkRate operations, fetches;  // what the coordinator learns, as in its registry
  };

  void rebuild();

  const uint32_t backlog_units_;
  LargeVector<Node> nodes_;
  std::vector<Gpus> gpus_;         // by node
  std::vector<NodeState> parked_;  // by node; of those that are down
  std::vector<uint32_t> places_;   // of the nodes in the view; kNone while they are down
  std::vector<uint32_t> up_;       // in the order of the view
  View view_;
  ClusterPace pace_;
  uint64_t total_units_ = 0;
  uint64_t busy_units_ = 0;
};

}  // namespace tierpilot::sim

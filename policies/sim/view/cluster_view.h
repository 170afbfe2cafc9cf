// What the coordinator knows of the nodes, kept as the one View that policies are shown: only what
// has changed is written. Who is a candidate, and which nodes a decision looks at in a large
// cluster, say policies/scheduling/room.h and shortlist.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/large_pages.h"
#include "policies/interface/values.h"
#include "policies/scheduling/held_tasks.h"
#include "policies/scheduling/room.h"
#include "policies/scheduling/service_order.h"
#include "policies/scheduling/shortlist.h"
#include "policies/scheduling/work_rate.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/model/service.h"
#include "policies/sim/model/workload.h"
#include "policies/sim/view/gpus.h"
#include "policies/sim/view/load_order.h"
#include "policies/sim/view/node_set.h"

namespace tierpilot::sim {

class ClusterView {
 public:
  // `shows_full`: views say which nodes are full; in a large cluster some that hold the data are
  // among them.
  ClusterView(const ClusterSpec& cluster, const Workload& workload, const ReplicaStore& store,
              bool shows_full);

  // Some node could take the task if it were empty.
  bool can_ever_take(const Task& task) const;
  // Makes `view` the one of this task; the number of candidates.
  size_t show(const Task& task);
  const View& view() const { return is_large() ? short_ : view_; }

  void expect(uint32_t node) const {
    prefetch(nodes_[node]);
    if (places_[node] != kNone) prefetch(view_.nodes[places_[node]]);
  }
  // A decision: the task is the node's until released. Gives its GPUs.
  Gpus::Mask assign(uint32_t node, const Task& task, uint64_t missing_bytes);
  void served(uint32_t node, uint64_t missing_bytes, const Service& service);
  void started(uint32_t node, const Task& task);
  // It ran for so long, from its launch to its end.
  void succeeded(uint32_t node, const Task& task, double run_s);
  struct Held {
    Gpus::Mask gpus = 0;
    uint64_t missing_bytes = 0;  // not served yet
    bool running = false;
  };
  void release(uint32_t node, const Task& task, const Held& held);

  // The shown view is for a policy that may keep its task back.
  void allow_holding(bool may_hold) { (is_large() ? short_ : view_).may_hold = may_hold; }
  void set_held(uint32_t node, HeldTasks::Load load);

  // For a task of one unit.
  bool has_room(uint32_t node) const {
    if (places_[node] == kNone) return false;
    const NodeState& state = view_.nodes[places_[node]];
    return has_units_left(state.assigned, state.units, backlog_units_);
  }
  const ClusterPace& pace() const { return pace_; }

  void room_changed(uint32_t node);
  void node_down(uint32_t node);  // its tasks have been released
  void node_up(uint32_t node);
  void gpu_failed(uint32_t node, uint32_t gpu, bool failed);

  size_t up_count() const { return order_.size(); }
  uint64_t total_units() const { return total_units_; }
  double utilisation() const {
    return total_units_ ? static_cast<double>(busy_units_) / static_cast<double>(total_units_) : 0;
  }

 private:
  // What of a task decides who is a candidate.
  struct Shape {
    uint32_t units = 0;
    uint32_t gpu_milli = 0;
    uint16_t gpu_type = kAnyGpuType;
    uint64_t memory_bytes = 0;
    uint64_t data_bytes = 0;  // 0 when the smallest budget has room for it
    bool operator==(const Shape&) const = default;
  };
  // The nodes that can take tasks of a shape now. Kept for the last few shapes: a workload mostly
  // has few, and looking at all nodes again for each task would be dear.
  struct Candidates {
    Shape shape;
    NodeSet nodes;
    uint64_t shown = 0;  // when it was last asked for
  };
  static constexpr size_t kShapesKept = 8;
  struct alignas(64) Node {  // a cache line, as everything that is touched for each task
    const NodeGroup* group;
    uint16_t gpu_type;
    WorkRate operations, fetches;  // what the coordinator learns, as in its registry
  };

  Shape shape_of(const Task& task, uint64_t data_bytes) const;
  bool has_kind(const Node& node, const Shape& shape) const;
  bool can_take(uint32_t node, const Shape& shape) const;
  // Points `shown_` to the candidates of the shape.
  void select(const Shape& shape);
  Candidates& add_shape(const Shape& shape);
  bool is_large() const { return order_.size() > considered_nodes_; }
  void find_holders(const Task& task);
  void tell_held(uint32_t node);
  class Listing;
  void shorten();
  void mark(size_t place);
  void refresh(uint32_t node);
  void rebuild();
  void clear_held();
  uint64_t data_bytes(const Task& task) const;

  const Workload& workload_;
  const ReplicaStore& store_;
  const uint32_t backlog_units_;
  const uint32_t considered_nodes_;
  const bool shows_full_;
  uint64_t smallest_budget_ = UINT64_MAX;
  LargeVector<Node> nodes_;
  std::vector<Gpus> gpus_;         // by node
  std::vector<NodeState> parked_;  // by node; of those that are down
  std::vector<uint32_t> places_;   // of the nodes in the view; kNone while they are down
  std::vector<uint32_t> order_;
  View view_;   // of all nodes that are up
  View short_;  // what a decision in a large cluster looks at
  LoadOrder by_load_;
  NodeSet chosen_;  // the short view's
  std::vector<Candidates> shapes_;
  Candidates* shown_ = nullptr;  // among them
  uint64_t shows_ = 0;
  // What nodes hold of the shown task's data; apart from their states, which fill the caches.
  struct AtHand {
    uint64_t fast_bytes = 0, slow_bytes = 0;
    bool listed = false;  // among the holders
  };
  std::vector<AtHand> at_hand_;              // by node
  std::vector<uint32_t> holders_;            // nodes that are up
  std::vector<uint32_t> told_;               // of these, whose states say it
  std::vector<DataHolder<uint32_t>> ranks_;  // of them
  ClusterPace pace_;
  uint64_t total_units_ = 0;
  uint64_t busy_units_ = 0;
};

}  // namespace tierpilot::sim

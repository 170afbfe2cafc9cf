// Where all ranks of a gang could run now, on the units and GPUs that are idle, as chosen by a
// policy of gangs. Follows the coordinator's (coordinator/core/gangs/gang_plan.cc).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "policies/gang/placement/placer.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/view/node_states.h"

namespace tierpilot::sim {

class GangRoom {
 public:
  GangRoom(const ClusterSpec& cluster, const NodeStates& nodes, gang::Placer& placer)
      : cluster_(cluster), nodes_(nodes), placer_(placer) {}

  // Of all nodes, or of those that are up, if they had nothing else to do.
  bool could_ever_hold(const TaskShape& rank, uint32_t ranks) const;
  bool could_hold(const TaskShape& rank, uint32_t ranks) const;
  // The node of each rank; empty: there is no room. `work_s`: what the gang says it takes.
  std::vector<uint32_t> place(int64_t now_ns, const TaskShape& rank, uint32_t ranks, double work_s);
  // Some node has more room than when place() found none.
  void grew() { none_for_.clear(); }

 private:
  gang::PlacementState state_of(const TaskShape& rank) const;

  const ClusterSpec& cluster_;
  const NodeStates& nodes_;
  gang::Placer& placer_;
  // There is no room for so many ranks of the shape, or more.
  std::vector<std::pair<TaskShape, uint32_t>> none_for_;
};

}  // namespace tierpilot::sim

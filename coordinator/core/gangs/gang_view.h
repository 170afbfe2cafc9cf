// What gang policies are shown of the cluster, for one gang: the same as where they were trained
// (policies/sim/gang/). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "policies/gang/placement/rank_slots.h"

namespace tierpilot {

struct GangView {
  struct Node {
    const NodeRecord* record = nullptr;
    Resources room;                   // that ranks may have now; nothing where it takes none
    std::vector<uint32_t> cpu_units;  // its compute units that ranks may have, the soundest first
  };

  gang::PlacementState state;  // all units of the gang's engine on the nodes below, free or not
  gang::Job job;
  gang::GangShape shape;
  std::vector<Node> nodes;        // by their numbers in the state: those that could run ranks
  std::vector<uint32_t> numbers;  // of each unit among its node's compute units, or its GPUs
};

// How many ranks the node could have, of `free` units and what else it has; 0: too few.
uint32_t ranks_within(const Resources& free, const TaskSpec& spec, const NodeFacts& facts);

// `checkpoint`: that it begins from; empty: from nothing.
GangView gang_view(const ClusterState& state, const Task& gang, const std::string& checkpoint);

}  // namespace tierpilot

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
  gang::PlacementState state;  // all units of the gang's engine on the nodes below, free or not
  gang::Job job;
  gang::GangShape shape;
  std::vector<const NodeRecord*>
      nodes;                      // by their numbers in the state: those that could run ranks
  std::vector<uint32_t> numbers;  // of each unit among its node's compute units, or its GPUs
};

// How many ranks the node could have, of `free` units and what else it has; 0: too few.
uint32_t ranks_within(const Resources& free, const TaskSpec& spec, const NodeFacts& facts);
uint32_t units_per_rank(const TaskSpec& spec);
// The node's compute units that gangs may have now, the soundest first.
std::vector<uint32_t> free_cpu_units(const ClusterState& state, const NodeFacts& facts);
// What the node has left for ranks of the gang.
Resources room_for_ranks(const ClusterState& state, const NodeRecord& node, const TaskSpec& spec);

// `checkpoint`: that it begins from; empty: from nothing.
GangView gang_view(const ClusterState& state, const Task& gang, const std::string& checkpoint);

}  // namespace tierpilot

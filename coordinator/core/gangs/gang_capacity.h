// What of a gang nodes could run if they had nothing else to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

// Whether nodes that may have up to so many ranks each can have the gang, with its least on each
// that it uses.
bool can_spread(std::vector<uint32_t> room, const GangSpec& gang);

// "at least 2 and at most 4 on each".
std::string bounds_text(const GangSpec& gang);

struct GangCapacity {
  uint64_t ranks = 0;  // on all nodes together; not more than the gang has on one
  bool holds = false;  // the whole gang
};

// Of all nodes that are known, whatever is wrong with them now.
GangCapacity known_capacity(const Registry& registry, const TaskSpec& spec);
// Of those that take tasks, without units that are out of service.
GangCapacity present_capacity(const ClusterState& state, const TaskSpec& spec);

}  // namespace tierpilot

// Ranks of a gang onto units of nodes: what a placer chooses are slots, each of as many units of
// one node as a rank needs, so that placers know nothing of ranks and of how many a node may have.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "policies/gang/placement/placer.h"

namespace tierpilot::gang {

struct GangShape {
  uint32_t ranks = 1;
  uint32_t units_per_rank = 1;      // all of one node
  uint32_t ranks_per_node_min = 0;  // of each node that has some; 0: any
  uint32_t ranks_per_node_max = 0;  // 0: any
};

struct RankPlaces {
  std::vector<std::vector<uint32_t>> units;  // of each rank; ranks of a node follow each other
  std::string reason;                        // in words, for operators
  double expected_h = 0;                     // as expected_hours() has it, of all of them
};

// `job.units` is set by the shape. kUnavailable: not now, for want of free units or of nodes that
// have enough of them; the message says which. kInvalid: the placer chose what it was not offered,
// and the message says what.
Result<RankPlaces> place_ranks(const PlacementState& state, const Job& job, const GangShape& shape,
                               Placer& placer);

}  // namespace tierpilot::gang

// One process of a gang, as coordinator and node tell it to each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tierpilot {

// On its node.
struct RankPlace {
  uint32_t local_rank = 0;  // among those on its node
  uint32_t local_world_size = 1;
  uint32_t node_rank = 0;           // its node's number among the gang's
  std::vector<uint32_t> cpu_units;  // that it may have, best first; empty: any
  std::vector<std::string> gpus;    // all its own, by UUID
};

struct RankAssignment {
  uint64_t gang = 0;
  uint32_t rank = 0;
  uint32_t world_size = 1;
  RankPlace place;
  std::string master_address;
  uint16_t master_port = 0;  // 0: this node is to find one
  uint32_t restarts = 0;
};

}  // namespace tierpilot

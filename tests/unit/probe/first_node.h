// A tier that every machine has.
#pragma once

#include "daemon/topology/tiers.h"

namespace tierpilot {

inline const TierSpec kNode0{
    .name = "dram0", .kind = "dram", .numa_node = 0, .capacity_bytes = 4ULL << 30};

}  // namespace tierpilot

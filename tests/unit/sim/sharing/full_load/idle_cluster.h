// Idle nodes and requests of tests of full load.
#pragma once

#include "base/bytes.h"
#include "policies/sharing/cluster.h"

namespace tierpilot::sharing {

inline Node node_of(size_t units, uint32_t cpu_milli = 64'000, uint8_t model = 0) {
  return {.cpu_milli = cpu_milli,
          .memory_bytes = 256 * kGiB,
          .model = model,
          .units = std::vector<Unit>(units)};
}

// A share of one unit.
inline Request asks_for(uint32_t milli, uint32_t cpu_milli = 1000) {
  return {.cpu_milli = cpu_milli, .memory_bytes = kGiB, .units = 1, .share = {.milli = milli}};
}

}  // namespace tierpilot::sharing

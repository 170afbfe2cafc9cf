// What a client of MPS has to ask for, to have a share of a GPU's multiprocessors. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/topology/topology.h"

namespace tierpilot::agent {

struct MpsPart {
  uint32_t percent = 100;  // that it asks for
  uint32_t milli = 1000;   // of the multiprocessors, that it is given
};

// By its cores: how many each has tells the CUDA C++ Programming Guide, by compute capability.
// 0: not known.
inline uint32_t multiprocessors_of(const Gpu& gpu) {
  const double capability = gpu.compute_capability.value_or(0);
  if (!gpu.cores || capability < 7.95) return 0;
  return *gpu.cores / (capability < 8.05 ? 64 : 128);
}

// The least that is no less than the share. MPS gives whole multiprocessors, in pairs, rounded
// down: seen on an H200, where 30 % of 132 were 38.
inline MpsPart mps_part(uint32_t share_milli, uint32_t multiprocessors) {
  share_milli = std::clamp(share_milli, 1u, 1000u);
  if (multiprocessors < 2) return {std::min(100u, (share_milli + 9) / 10 + 1), share_milli};
  for (uint32_t percent = (share_milli + 9) / 10; percent < 100; ++percent) {
    const uint32_t given = percent * multiprocessors / 100 / 2 * 2;
    if (given * 1000 >= share_milli * multiprocessors)
      return {percent, given * 1000 / multiprocessors};
  }
  return {};
}

}  // namespace tierpilot::agent

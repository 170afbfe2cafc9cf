// Compute that best-effort jobs have to give up.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "policies/sharing/live/live_unit.h"

namespace tierpilot::sharing {

inline constexpr uint32_t kLeastMilli = 100;  // with less a job is not worth its memory

struct Taken {
  uint32_t milli = 0;                               // in all; may be less than was wanted
  std::vector<std::pair<uint64_t, uint32_t>> left;  // by job: what it keeps
  std::vector<uint64_t> preempted;
};

// `least_milli`: that a job is left before it is preempted, while there is another way; 0: jobs
// give all or nothing. Who loses least by it is asked first: those that take checkpoints, by what
// an end now would cost them.
Taken take_from_best_effort(const LiveUnit& unit, uint32_t wanted_milli, uint32_t least_milli);

// The best-effort jobs that have to end so that so much memory is free, those first that lose least
// by it; nobody, where it is free already or cannot be.
std::vector<uint64_t> who_frees_memory(const LiveUnit& unit, uint64_t wanted_bytes);

}  // namespace tierpilot::sharing

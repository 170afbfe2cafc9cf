// On which NUMA nodes the calling process and all that it becomes and forks get their memory.
#pragma once

#include <vector>

#include "base/result.h"

namespace tierpilot {

inline constexpr int kMaxNumaNode = 1023;

// Pages come from `nodes`, in turn when interleaved, and from others when these are full. No nodes:
// changes nothing. The error says what was asked for, and why the kernel refused.
Status set_memory_policy(const std::vector<int>& nodes, bool interleave);

}  // namespace tierpilot

// The rule of Peng et al., "Capuchin: Tensor-based GPU Memory Management for Deep Learning" (ASPLOS
// 2020): from the measured times of accesses, first those storages are swapped whose copies fit
// between two accesses, the longest free time per time of its copies first; then what costs least
// for the bytes, to be swapped with a wait or recomputed, where ancestors that are away count.
#pragma once

#include <limits>
#include <vector>

#include "policies/swap/machine/limits.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

// From what just covers the peak to all: measuring tells which is best. Those that are found within
// so many looks at operators that would be recomputed.
std::vector<Plan> capuchin_plans(const Graph& graph, const Timetable& timetable,
                                 const Limits& limits,
                                 size_t most_looks = std::numeric_limits<size_t>::max());

}  // namespace tierpilot::swap

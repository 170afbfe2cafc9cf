// The least time that recomputing takes within a budget, by integer programming (Jain et al.,
// Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization, MLSys 2020), for small
// steps: the program has a variable for each operator, and for each tensor, at each operator.
//
// As there, operators run in the program's order: before each new one any of the earlier ones, in
// that order and each once. What is made again counts beside what of it is still there.
#pragma once

#include "policies/swap/policies.h"

namespace tierpilot::swap {

inline constexpr size_t kMostOptimumOperators = 60;

struct OptimumLimits {
  double seconds = 60;  // for the solver; then what was found counts, and how far it may be off
  int nodes = 1'000'000;
};

PolicyInfo optimum_info();

// Recomputes only. The outcome says why where it fails: too many operators, no way within the
// budget, none found in time. `origin` is "proven", or "within 3.1 %".
Replayed replay_optimum(const Graph& graph, const Limits& limits, const OptimumLimits& effort = {});

}  // namespace tierpilot::swap

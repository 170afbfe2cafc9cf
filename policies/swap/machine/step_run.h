// Replays a step on a machine: runs its operators in the program's order, and again where what they
// read has left.
//
// The rules of recomputing are those of the simulator of Dynamic Tensor Rematerialization (Kirisame
// et al., ICLR 2021).
#pragma once

#include "policies/swap/machine/machine.h"
#include "policies/swap/machine/outcome.h"

namespace tierpilot::swap {

Outcome run_step(const Graph& graph, const Limits& limits, Manager& manager);

}  // namespace tierpilot::swap

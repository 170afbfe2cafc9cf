// Who decides where a learned policy does not: past its deadline, in its stead while it is compared
// or deposed, and in front of what its weights never saw.
#pragma once

#include <string_view>

#include "policies/interface/values.h"

namespace tierpilot {

// The candidate whose estimated finish is the earliest, with the time for data counted twice
// (shared_finish_s), the least loaded and then the first among equals; or where View::may_hold
// allows it a full node to wait for (policies/scheduling/delay.h). Decision::q is in seconds,
// negated, of the candidates and of all nodes that could be waited for. Stateless, microseconds,
// callable from any thread.
Decision fallback_decide(const View& view);
// In place of a network, whose fault it tells.
Decision fallback_decide(const View& view, DecisionFault fault, std::string_view why);

}  // namespace tierpilot

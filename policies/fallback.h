// Who decides where a learned policy does not: past its deadline, in its stead while it is compared
// or deposed, and in front of what its weights never saw.
#pragma once

#include <string_view>

#include "policies/values.h"

namespace tierpilot {

// The candidate with the earliest estimated finish (policies/estimate.h), the least loaded and then
// the first among equals. Decision::q is in seconds, negated. Stateless, microseconds, callable
// from any thread.
Decision fallback_decide(const View& view);
// In place of a network, whose fault it tells.
Decision fallback_decide(const View& view, DecisionFault fault, std::string_view why);

}  // namespace tierpilot

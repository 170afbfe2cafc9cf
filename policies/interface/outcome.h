// What becomes of a decision on where a task runs, in the order in which it is measured. A kind of
// decision that is measured by other things adds its own.
#pragma once

#include <variant>

#include "policies/interface/values.h"

namespace tierpilot {

// The task's data was served, with this reward.
struct DataServed {
  RewardParts reward;
};
// It succeeded, so long after the decision.
struct Finished {
  double response_s = 0;
};
// No more will be known of it.
struct Abandoned {};

using Outcome = std::variant<DataServed, Finished, Abandoned>;

// The decision is over: nothing is measured of it after this.
inline bool ends(const Outcome& outcome) {
  return !std::holds_alternative<DataServed>(outcome);
}

}  // namespace tierpilot

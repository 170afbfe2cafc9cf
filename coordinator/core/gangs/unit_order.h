// What an operator orders of one compute unit.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "coordinator/core/cluster_state.h"

namespace tierpilot {

struct UnitOrder {
  std::string unit;
  bool drain = true;   // false: it is in service again, and what counted against it is forgotten
  std::string reason;  // of a drain
};

// Nothing of it holds before it is on disk; `done` is told then, or why it is not.
void order_unit(ClusterState& state, UnitOrder order, std::function<void(Status)> done);

}  // namespace tierpilot

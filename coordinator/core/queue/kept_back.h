// What an operator is told of a task that is kept back (policies/scheduling/held_tasks.h). Pure.
#pragma once

#include <optional>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

struct KeptBack {
  std::string node;  // full, and waited for
  std::string reason;
  int64_t since_ms = 0;  // wall time: first asked about
  int64_t until_ms = 0;  // placed elsewhere at the latest
};

// Nothing: it is not, or its turn to be asked about again has come.
std::optional<KeptBack> kept_back(const ClusterState& state, const Task& task);

}  // namespace tierpilot

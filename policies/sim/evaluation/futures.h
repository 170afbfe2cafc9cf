// The same future simulated several times, with one task placed differently.
#pragma once

#include <functional>
#include <vector>

#include "policies/sim/simulator.h"

namespace tierpilot::sim {

// A run up to a decision, of which each future is another end.
struct Past {
  std::vector<size_t> nodes;    // what was decided, an index into View::nodes each
  std::vector<uint32_t> tasks;  // about which task
};

struct Future {
  // Of all tasks but the one that was placed differently.
  double others_response_s = 0;
  View view;  // at the decision
  size_t node = 0;
};

// Decides as the past did before its decision `at`, there by `choose`, and afterwards by `policy`.
// Tasks after `last_task` are left out. kInvalid when the past cannot be had again.
Result<Future> simulate_future(const ClusterSpec& cluster, const Workload& workload,
                               const Past& past, size_t at, uint32_t last_task,
                               const std::function<size_t(const View&)>& choose, Policy& policy);

}  // namespace tierpilot::sim

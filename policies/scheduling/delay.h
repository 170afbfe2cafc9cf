// Delay scheduling (Zaharia et al.: EuroSys 2010): a task waits a while for a full node that has
// its data, in place of having the data brought elsewhere. How long at most is not decided here
// (policies/scheduling/held_tasks.h).
#pragma once

#include "policies/interface/values.h"
#include "policies/scheduling/estimate.h"

namespace tierpilot {

// The full node of the least cost, where that is below `least`; kNoNode: there is none, or the task
// may not be kept back, or has no data that could be brought, or wants GPUs, whose wait nobody
// estimates.
template <class Cost, class CostOf>
size_t full_node_below(const View& view, Cost least, CostOf cost_of) {
  size_t best = kNoNode;
  if (!view.may_hold || view.task.data_bytes == 0 || view.task.gpu_milli > 0) return best;
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    if (!view.nodes[i].full) continue;
    if (const Cost here = cost_of(view.nodes[i]); here < least) least = here, best = i;
  }
  return best;
}

// By shared_finish_s, in place of a candidate with `least_s`. To wait has to gain a tenth: it is
// the less certain of the two.
inline size_t worth_a_delay(const View& view, const NodeRates& typical, double least_s) {
  return full_node_below(view, least_s, [&](const NodeState& node) {
    const FinishEstimate there = estimate_finish(view.task, node, typical);
    return shared_finish_s(there) + 0.1 * there.finish_s();
  });
}

}  // namespace tierpilot

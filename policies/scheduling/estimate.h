// How long a task would take on a node, from what is measured there.
#pragma once

#include <algorithm>

#include "policies/interface/values.h"

namespace tierpilot {

// What the task would meet on one node, in seconds.
struct FinishEstimate {
  double wait_s = 0;   // until the node has as many free units
  double serve_s = 0;  // until its data is in the fast tier: transfer, behind others' transfers
  double evict_s = 0;  // making room for it, part of serve_s
  double run_s = 0;
  // Data is brought in while the task waits for units.
  double finish_s() const { return (wait_s > serve_s ? wait_s : serve_s) + run_s; }
};

// Busy or assigned units per unit.
inline double load_of(const NodeState& node) {
  return static_cast<double>(std::max(node.assigned, node.running)) /
         std::max<uint32_t>(node.units, 1);
}

// Assigned units per unit over all nodes of the view, at most 1.
double cluster_load(const View& view);

// finish_s() and what the task delays those after it, as in an M/G/1 queue under the load (rho) of
// the cluster: with u the wait and x the time it keeps the node busy,
//   u + x + rho / (1 - rho) (u x + x^2 / 2) / x      for tasks that are alike
// (Hyytia, Penttinen, Aalto: European J. of Operational Research 217(2), 2012). rho is taken as at
// most 0.9: an estimate of a full cluster's patience is none.
double marginal_cost_s(const FinishEstimate& estimate, double load);

// finish_s() and the time that bringing its data keeps links and tiers from others.
inline double shared_finish_s(const FinishEstimate& estimate) {
  return estimate.finish_s() + estimate.serve_s;
}

// Of each unit; a nominal figure, a tenth of a second's worth, where the task does not tell.
double operations_of(const TaskFeatures& task);

// Where nobody has measured anything.
inline constexpr NodeRates kNominalRates{.operations_per_s = 1e9,
                                         .fast_bytes_per_s = 8e9,
                                         .promote_bytes_per_s = 1e9,
                                         .evict_bytes_per_s = 1e9,
                                         .fetch_bytes_per_s = 1e9};

// Takes the place of rates that a node does not know: the mean of those that others in the view
// have measured, and where nobody has, a nominal figure that is the same for all nodes, so that it
// ranks nodes only by how much they would have to do.
NodeRates typical_rates(const View& view);
// The node's own rate, where it is known.
double or_typical(double rate, double typical);

// Earliest finish time as in HEFT (Topcuoglu, Hariri, Wu: IEEE TPDS 13(3), 2002): available time of
// the processor, transfer of the inputs, then execution. The wait is that of a queue with as many
// servers as the node has units, whose tasks are as large as the assigned ones are on average.
FinishEstimate estimate_finish(const TaskFeatures& task, const NodeState& node,
                               const NodeRates& typical);

// The least finish_s() of any candidate; 0 without one.
double best_finish_s(const View& view);

}  // namespace tierpilot

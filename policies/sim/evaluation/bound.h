// What no policy can beat, not even one that knows the future.
#pragma once

#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

// A lower bound of the mean response time, in seconds, when every task succeeds at its first
// attempt: the larger one of
//   alone      every task runs at once on a unit of the fastest node;
//   conserved  all units are one fast server that may interrupt tasks: in the order of the shortest
//              first its mean busy dates are least (Chou, Queyranne, Simchi-Levi: Mathematical
//              Programming 106(1), 2006), and a task ends half of its run after its mean busy date.
// In both, data is where it is needed, except that a dataset cannot be in a fast tier before it was
// once promoted, for the first task that asks for it.
double mean_response_bound_s(const ClusterSpec& cluster, const Workload& workload);

}  // namespace tierpilot::sim

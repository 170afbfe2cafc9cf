#include "policies/sim/simulator.h"

#include "policies/sim/simulation.h"

namespace tierpilot::sim {

Result<RunResult> simulate(const ClusterSpec& cluster, const Workload& workload, Policy& policy,
                           const RunOptions& options) {
  return Simulation(cluster, workload, policy, options).run();
}

}  // namespace tierpilot::sim

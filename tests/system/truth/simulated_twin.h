// The simulated counterpart of real runs, and where the time of a mean task goes in both.
#pragma once

#include <map>
#include <set>
#include <string>

#include "policies/sim/simulator.h"
#include "tests/system/truth/measured_costs.h"

namespace tierpilot::test {

// Where a task's time goes, in seconds: shows what the simulator misses.
struct Parts {
  double waiting = 0;  // in the queue, on the way to its node, for compute units
  double serving = 0;  // its data
  double running = 0;  // from its start until the coordinator knows its end

  double response_s() const { return waiting + serving + running; }
  std::string text() const;
};
using PartsByTask = std::map<std::string, Parts>;

Parts mean_without(const std::set<std::string>& left_out, const PartsByTask& tasks);
PartsByTask real_parts(const Json& tasks);

struct Twin {
  sim::RunResult result;
  PartsByTask tasks;

  double local_byte_share() const;
};

// The plan's tasks on a cluster with a policy. What tasks take is the real run's: how fast the
// machine computes changes by a quarter from run to run. What they say that they take is what
// policies see. Throws where that cannot be simulated.
Twin simulate_twin(const sim::ClusterSpec& cluster, const std::string& policy, const Json& plan,
                   const RealRun& real, double int32_to_float);

}  // namespace tierpilot::test

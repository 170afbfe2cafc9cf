// A training job of several units, and the cluster it runs on, as placers know them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tierpilot::gang {

struct Job {
  double arrival_h = 0;
  uint32_t units = 1;
  double work_h = 0;     // on one node, without failures; to placers: what is left, by the estimate
  uint32_t network = 0;  // which one it trains: its speed when it is spread, see kNetworks
  uint32_t user = 0;
  double estimate = 1;  // of its work, over what it is
};

// Speed on several nodes over that on one, of jobs on two, four and eight units: medians over
// batches and GPUs of the measurements of Narayanan et al., "Heterogeneity-Aware Cluster Scheduling
// Policies for Deep Learning Workloads" (OSDI 2020).
struct Network {
  const char* name;
  double spread_speed[3];
};
extern const std::vector<Network> kNetworks;
// Of a job of so many units on so many nodes; 1 on the fewest that it can be on.
double speed_of(uint32_t network, uint32_t units, uint32_t nodes, uint32_t units_per_node);

// What failures and checkpoints cost.
struct Costs {
  double checkpoint_h = 0.02;
  double restart_h = 0.1;
  double repair_h = 4;  // a unit that failed is out for so long
};

// The time between checkpoints that loses least (Young, "A first order approximation to the optimum
// checkpoint interval", CACM 17(9), 1974).
double checkpoint_interval_h(const Costs& costs, double failures_per_h);
// Wall time over work, from checkpoints and expected failures.
double stretch_of(const Costs& costs, double failures_per_h);

}  // namespace tierpilot::gang

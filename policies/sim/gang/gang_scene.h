// What is simulated: jobs, a cluster, and how its units fail.
#pragma once

#include <memory>
#include <vector>

#include "policies/gang/placement/job.h"
#include "policies/sim/gang/unit_failures.h"

namespace tierpilot::gang {

// A whole node is out of service, whether or not it has a job.
struct Outage {
  double from_h = 0;
  double until_h = 0;
  uint32_t node = 0;
};

// What somebody else's estimate says from some time on, until the next one.
struct ToldRates {
  double from_h = 0;
  std::vector<double> per_h, shape;  // of each node: of every unit of it, see PlacementState
};

// What a job needs where it runs: its data, and after its first run its checkpoint.
struct JobData {
  double bytes = 0;
  std::vector<uint32_t> nodes;  // that have it at first
  double checkpoint_bytes = 0;
};

struct GangScene {
  std::vector<Job> jobs;  // by arrival; none needs more units than there are
  uint32_t units = 16;
  uint32_t units_per_node = 4;
  Costs costs;
  UnitFailures failures;
  // Of the estimate of a unit's rate: a Gamma prior of this shape around the mean of the fleet, and
  // days count half after the half-life, so that a repaired unit becomes good again.
  double prior_shape = 0.5;
  double half_life_h = 60 * 24;
  // By time; with them units are out for as long as these say and not for Costs::repair_h, and each
  // one's beginning is a failure of all the node's units in `failures`, too.
  std::vector<Outage> outages = {};
  std::shared_ptr<const std::vector<ToldRates>> told = {};  // by time; null: as estimated above
  std::vector<JobData> data = {};        // of each job; empty: nothing is fetched
  std::vector<double> bytes_per_h = {};  // of each node, as it was measured; with `data`
};

}  // namespace tierpilot::gang

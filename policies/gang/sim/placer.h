// Who gets which units: the rivals of a policy that learns. They see the same, except the
// clairvoyant one, which also knows when units will fail.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "policies/gang/sim/job.h"
#include "policies/gang/sim/unit_failures.h"

namespace tierpilot::gang {

struct ClusterState {
  double now_h = 0;
  uint32_t units_per_node = 4;
  std::vector<bool> free;     // of each unit: neither busy nor under repair
  std::vector<double> per_h;  // its estimated failure rate
  Costs costs;
  const UnitFailures* failures = nullptr;  // for the clairvoyant alone

  uint32_t node_of(uint32_t unit) const { return unit / units_per_node; }
};

// `units` of the state that are free, in any order; at least `job.units` are. Returns so many.
class Placer {
 public:
  virtual ~Placer() = default;
  virtual std::vector<uint32_t> place(const ClusterState& state, const Job& job) = 0;
};

const std::vector<std::string>& placer_names();
Result<std::unique_ptr<Placer>> make_placer(const std::string& name, uint64_t seed);

// The hours the job is expected to take on these units, if its work takes `work_h`.
double expected_hours(const ClusterState& state, const Job& job, double work_h,
                      const std::vector<uint32_t>& units);

}  // namespace tierpilot::gang

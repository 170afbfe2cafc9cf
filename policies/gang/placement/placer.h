// Which units a gang gets, in the coordinator as in the simulation. All placers see the same,
// except the clairvoyant one, which also knows when units will fail.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "policies/gang/placement/job.h"
#include "policies/interface/module.h"

namespace tierpilot::gang {

struct PlacementState {
  double now_h = 0;
  uint32_t units_per_node = 4;  // at most
  std::vector<uint32_t> node;   // of each unit; those of a node stand together
  std::vector<bool> free;       // of each unit: neither busy nor under repair
  std::vector<double> per_h;    // its estimated failure rate
  // Of the Gamma distribution that the rate is estimated by: the larger, the surer. Empty: not
  // known.
  std::vector<double> rate_shape;
  // When it failed, as far as that was seen, rising; may be before the run's 0. Empty: not known.
  std::vector<std::vector<double>> failed_h = {};
  std::vector<double> fetch_h;  // of each unit: hours until its node has the job's data and
                                // checkpoint; empty: nothing to fetch
  double waiting_units = 0;     // that other jobs in the queue want
  Costs costs;
  // When a unit fails next, of what is to come; for the clairvoyant alone.
  std::function<double(uint32_t unit, double after_h)> next_failure_h;

  uint32_t node_of(uint32_t unit) const { return node[unit]; }
};

// `units` of the state that are free, in any order; at least `job.units` are. Returns so many.
class Placer {
 public:
  virtual ~Placer() = default;
  virtual std::vector<uint32_t> place(const PlacementState& state, const Job& job) = 0;
};

// What a placer is made of.
struct PlacerOrigin {
  uint64_t seed = 1;
  std::string weights = {};  // file of one that learned
};
struct PlacerModule : PolicyModule<Placer, PlacerOrigin> {
  bool draws = false;         // by its seed; others do the same each time
  bool knows_future = false;  // PlacementState::next_failure_h
  bool learned = false;       // it answers to a guard
  bool needs_past = false;    // PlacementState::failed_h
};
using PlacerModules = ModuleList<PlacerModule>;

// Those that learned nothing; policies/gang/learned/ has the others.
const PlacerModules& placers();
Result<std::unique_ptr<Placer>> make_placer(const std::string& name, uint64_t seed);

// Until the last of their nodes has what the job needs.
double fetch_hours(const PlacementState& state, const std::vector<uint32_t>& units);
// The hours the job is expected to take on these units, if its work takes `work_h`. What is to be
// fetched counts once: after a failure the nodes of the run have it, and which node stands in for
// the failed unit's is not known yet.
double expected_hours(const PlacementState& state, const Job& job, double work_h,
                      const std::vector<uint32_t>& units);

}  // namespace tierpilot::gang

// What real runs tell of the machine they ran on, for simulating others there.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "policies/sim/model/cluster_spec.h"
#include "tests/system/client.h"
#include "tests/system/truth/machine_watch.h"

namespace tierpilot::test {

struct RealRun {
  Json tasks;    // as `tierctl task list` has them
  CpuTime used;  // with what came before and after the tasks
  std::vector<Standstill> standstills;

  double tasks_cpu_s() const;
  double local_byte_share() const;
  // Names of the tasks that were under way when the disk stood still, and of those that met these.
  std::set<std::string> disturbed() const;
};

// The task's own, whoever else computes.
double cpu_s(const Json& task);

// Sets how fast the slow tier is: the mean of two looks at it. Memory changes less.
void take_slow_tier(const sim::TierSpeeds& before, const sim::TierSpeeds& after,
                    sim::TierSpeeds& tiers);

// Sets what the coordinator's and the daemons' own steps take, what they cost where cores are
// shared, and how fast the fast tier copies and frees files. `smallest` has the same datasets as
// `run` and hardly a task; `idle` is a while without any. False: hardly any task of the run met no
// other, so that nothing can be told.
bool take_costs(const RealRun& run, const RealRun& smallest, const CpuTime& idle,
                sim::ClusterSpec& spec);

// How fast the machine computes changes by a quarter from run to run, as the CPU time of the same
// tasks tells: the daemons' changes with it.
sim::ClusterSpec at_speed_of(const RealRun& run, const RealRun& told_by, sim::ClusterSpec spec);

}  // namespace tierpilot::test

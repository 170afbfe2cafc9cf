// What real runs tell of the machine they ran on, for simulating others there.
#pragma once

#include "policies/sim/cluster_spec.h"
#include "tests/system/client.h"

namespace tierpilot::test {

// All CPUs' time between two looks.
struct CpuTime {
  double busy_s = 0;
  double all_s = 0;  // as many seconds each second as there are CPUs

  static CpuTime now();
  CpuTime operator-(const CpuTime& before) const {
    return {busy_s - before.busy_s, all_s - before.all_s};
  }
};

struct RealRun {
  Json tasks;    // as `tierctl task list` has them
  CpuTime used;  // by everyone, with what came before and after the tasks

  double tasks_cpu_s() const;
};

// The task's own, whoever else computes.
double cpu_s(const Json& task);

// Sets what the coordinator's and the daemons' own steps take, what they cost where cores are
// shared, and how fast the fast tier copies and frees files. `smallest` has the same datasets as
// `run` and hardly a task; `idle` is a while without any. False: hardly any task of the run met no
// other, so that nothing can be told.
bool take_costs(const RealRun& run, const RealRun& smallest, const CpuTime& idle,
                sim::ClusterSpec& spec);

// How fast the machine computes changes by a quarter from run to run, as the CPU time of the same
// tasks tells: the daemons' changes with it.
sim::ClusterSpec at_speed_of(const RealRun& run, const RealRun& told_by, sim::ClusterSpec spec);

// The share of the CPUs that was neither the tasks' nor what the coordinator and the daemons take
// for tasks in the group.
double others_share(const RealRun& run, const RealRun& smallest, const sim::NodeGroup& group);

}  // namespace tierpilot::test

// Runs a workload on a simulated cluster with a policy: discrete events in virtual time. The policy
// is the same object that runs in the coordinator and cannot tell where it is. The rules are the
// product's: the queue, who is a candidate and who may overtake
// (coordinator/core/dispatch/next_task.cc), the pool (DataPlane), a node's own waiting (Engines),
// the reward.
//
// Equal cluster, workload, policy and seed give equal results, bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "policies/gang/placement/placer.h"
#include "policies/interface/policy.h"
#include "policies/placement/reward.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/model/workload.h"
#include "policies/sim/results.h"

namespace tierpilot::sim {

// One try of a task; a decision has the number of the attempt that it began.
struct Attempt {
  uint32_t task = 0;  // index into Workload::tasks
  uint32_t attempt = 0;
  auto operator<=>(const Attempt&) const = default;
};

struct TaskTimes {
  double wait_s = 0;
  double response_s = 0;
  double since_decision_s = 0;  // from the last decision about it to its end
  double since_asked_s = 0;     // from when the policy was first asked for that decision
};

// Is told of every decision and of what came of it, in order of virtual time: so a learner can be
// trained by the simulation. References are good during the call.
class Listener {
 public:
  virtual ~Listener() = default;
  // The policy is about to be asked for the attempt's node, perhaps again: it may have held it.
  virtual void asks(Attempt) {}
  virtual void decided(Attempt attempt, const View& view, const Decision& decision) = 0;
  // The attempt's data was served.
  virtual void served(Attempt attempt, const ServiceMeasure& measure,
                      const RewardParts& reward) = 0;
  // No reward will come for it.
  virtual void abandoned(Attempt attempt) = 0;
  virtual void finished(Attempt attempt, const TaskTimes& times) = 0;
};

struct RunOptions {
  uint64_t seed = 1;  // of failures; policies have their own
  RewardSettings reward;
  Listener* listener = nullptr;         // is told nothing of gangs
  gang::Placer* gang_placer = nullptr;  // places gangs; null: expected-time does
  // What coming events touch is brought into the caches, which changes no result. Unset: in large
  // clusters, where it pays.
  std::optional<bool> look_ahead;
  // Called now and then with the share of the tasks that have ended; false ends the run.
  std::function<bool(double)> progress;
};

// kInvalid when a decision names no candidate, or when the workload's datasets have no room;
// kTimeout when `progress` ended it.
Result<RunResult> simulate(const ClusterSpec& cluster, const Workload& workload, Policy& policy,
                           const RunOptions& options);

}  // namespace tierpilot::sim

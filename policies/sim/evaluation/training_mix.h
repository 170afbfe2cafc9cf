// What the dqn is trained on: clusters of 4 to 32 nodes and generated workloads, drawn anew for
// each run. Changes of popularity, bursts and clusters of more than 32 nodes are never drawn here:
// these are what evaluations hold out, beside the seeds.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "policies/interface/policy.h"
#include "policies/sim/evaluation/suite.h"
#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

// nodes        4, 8, 16 or 32, alike or in three groups whose speeds and budgets differ by up to 16
// load         0.3 to 0.85, of two in five cells 0.8 to 0.95
// data         4 to 16 datasets a node, the largest 64 to 512 MiB, popularity 1 / i^(0.3 to 1.2) at
//              8 nodes
// writes       0 to 30 % of the tasks
// scans        in three of ten cells, 20 to 90 % of the tasks
// run time     mean 0.2 to 1 s on a node of 1e9 operations/s
// transfers    0.2 to 2 GB/s, links and slow tiers each
// `tasks` on average: as many of each node, whatever the cluster's size.
EvaluationCell draw_training_cell(SeededRandom& random, uint32_t tasks);

// Tasks to place, and how well heuristics do that.
struct TrainingRun {
  EvaluationCell cell;
  Workload workload;
  uint64_t seed = 0;
  double best_response_s = 0;  // mean, of the best heuristic

  // ln of the policy's mean response over best_response_s.
  Result<double> compare(Policy& policy) const;
};

// What a policy is chosen by, of TrainingRun::compare(): a gain counts less the larger it is, and
// 0.2 at most, a loss 0.3. Else the few runs would decide everything in which a cluster collapses
// under one policy and not under the next, as a throw of the dice would have it.
double weighed(double log_ratio);

// Of cells whose best response is at most 30 times the bound: of an overloaded cluster there is
// nothing to learn but how long the overload lasts. A cluster may look overloaded only because its
// nodes fetch what they evicted a moment ago, so the limit is no lower.
Result<TrainingRun> draw_training_run(SeededRandom& random, uint32_t tasks);

}  // namespace tierpilot::sim

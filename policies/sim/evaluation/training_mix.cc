#include "policies/sim/evaluation/training_mix.h"

#include <algorithm>
#include <cmath>

#include "policies/placement/registry.h"
#include "policies/sim/evaluation/bound.h"
#include "policies/sim/simulator.h"

namespace tierpilot::sim {
namespace {

double uniform(SeededRandom& random, double low, double high) {
  return low + random.unit() * (high - low);
}

NodeGroup draw_common(SeededRandom& random) {
  NodeGroup group;
  group.units = 1 + static_cast<uint32_t>(random.below(4));
  group.fast_budget_bytes = static_cast<uint64_t>(random.log_uniform(768e6, 6e9));
  group.tiers.promote_bytes_per_s = random.log_uniform(0.2e9, 2e9);
  group.tiers.evict_bytes_per_s = group.tiers.promote_bytes_per_s * uniform(random, 0.5, 1);
  group.link_bytes_per_s = random.log_uniform(0.2e9, 2e9);
  return group;
}

// As the common node, but for speeds and sizes up to four times as large or as small.
NodeGroup vary(NodeGroup group, SeededRandom& random) {
  const auto factor = [&] { return random.log_uniform(1.0 / 4, 4); };
  group.operations_per_s *= factor();
  const double tiers = factor();
  group.tiers.promote_bytes_per_s *= tiers;
  group.tiers.evict_bytes_per_s *= tiers;
  group.link_bytes_per_s *= factor();
  group.fast_budget_bytes =
      static_cast<uint64_t>(static_cast<double>(group.fast_budget_bytes) * factor());
  group.units = 1 + static_cast<uint32_t>(random.below(4));
  return group;
}

}  // namespace

EvaluationCell draw_training_cell(SeededRandom& random, uint32_t tasks) {
  EvaluationCell cell;
  const auto nodes = static_cast<uint32_t>(4U << random.below(4));
  NodeGroup common = draw_common(random);
  if (random.chance(0.5)) {
    common.count = nodes;
    cell.cluster.groups = {common};
  } else {
    for (const uint32_t count : {nodes / 2, nodes / 4, nodes / 4}) {
      cell.cluster.groups.push_back(vary(common, random));
      cell.cluster.groups.back().count = count;
    }
  }
  GeneratorOptions& workload = cell.workload;
  // As many of each node in all sizes: what queues and full fast tiers do takes time to show.
  constexpr double kMeanNodes = 15;
  workload.tasks = std::max(10U, static_cast<uint32_t>(tasks * nodes / kMeanNodes));
  workload.offered_load =
      random.chance(0.4) ? uniform(random, 0.8, 0.95) : uniform(random, 0.3, 0.85);
  workload.max_dataset_bytes = static_cast<uint64_t>(random.log_uniform(64e6, 512e6));
  workload.min_dataset_bytes = workload.max_dataset_bytes / 8;
  // A node that has room for no task's data would be no node.
  for (NodeGroup& group : cell.cluster.groups)
    group.fast_budget_bytes =
        std::max(group.fast_budget_bytes, uint64_t{3} * workload.max_dataset_bytes);
  // From half to three times what all fast tiers hold.
  double fast_bytes = 0;
  for (const NodeGroup& group : cell.cluster.groups)
    fast_bytes += static_cast<double>(group.fast_budget_bytes) * group.count;
  const double mean_bytes =  // log-uniform
      static_cast<double>(workload.max_dataset_bytes - workload.min_dataset_bytes) / std::log(8);
  workload.datasets =
      nodes + static_cast<uint32_t>(fast_bytes / mean_bytes * random.log_uniform(0.5, 3));
  workload.zipf_exponent = flattened(uniform(random, 0.3, 1.2), nodes);
  workload.write_share = uniform(random, 0, 0.3);
  if (random.chance(0.3)) workload.scan_share = uniform(random, 0.2, 0.9);
  const double mean_operations = random.log_uniform(0.2e9, 1e9);
  workload.min_operations = mean_operations * 0.16;
  workload.max_operations = mean_operations * 3.2;
  return cell;
}

Result<double> TrainingRun::compare(Policy& policy) const {
  policy.explain(false);
  const auto result = simulate(cell.cluster, workload, policy, {.seed = seed});
  if (!result) return tl::unexpected(result.error());
  return std::log(result->response_s.mean / best_response_s);
}

double weighed(double log_ratio) {
  constexpr double kMostGain = 0.2;
  constexpr double kMostLoss = 0.3;
  return log_ratio < 0 ? kMostGain * std::expm1(log_ratio / kMostGain)
                       : -kMostLoss * std::expm1(-log_ratio / kMostLoss);
}

Result<TrainingRun> draw_training_run(SeededRandom& random, uint32_t tasks) {
  constexpr double kOverloaded = 30;
  for (;;) {
    TrainingRun run{.cell = draw_training_cell(random, tasks)};
    run.seed = random.bits();
    run.workload = generate(run.cell.workload, run.cell.cluster, run.seed);
    run.best_response_s = 1;
    double best = HUGE_VAL;
    for (const char* name :
         {"locality-load", "earliest-finish", "least-cost", "delay-locality", "delay-finish"}) {
      const auto policy = make_policy(name, run.seed);
      if (!policy) return tl::unexpected(policy.error());
      const auto response = run.compare(**policy);
      if (!response) return tl::unexpected(response.error());
      best = std::min(best, std::exp(*response));
    }
    run.best_response_s = best;
    if (best <= kOverloaded * mean_response_bound_s(run.cell.cluster, run.workload)) return run;
  }
}

}  // namespace tierpilot::sim

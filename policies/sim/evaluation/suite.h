// What policies are evaluated on: named workloads on clusters of several sizes. Changes of
// popularity, bursts, larger clusters and all seeds are held out from what the dqn is trained on
// (training_mix.h); skew, writes, scans, unlike nodes and high load are in both.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/sim/generator.h"
#include "policies/sim/model/cluster_spec.h"

namespace tierpilot::sim {

// One workload on one cluster.
struct EvaluationCell {
  ClusterSpec cluster;
  GeneratorOptions workload;
  // In place of that generator, of which only the name counts then.
  std::function<Result<Workload>(const ClusterSpec& cluster, uint64_t seed)> source;

  Result<Workload> tasks(uint64_t seed) const {
    if (source) return source(cluster, seed);
    return generate(workload, cluster, seed);
  }
};

struct Suite {
  std::string name;
  std::vector<EvaluationCell> cells;
  uint32_t seeds = 1;
};

// Seeds of evaluations begin here; training draws its own from far above.
inline constexpr uint64_t kFirstEvaluationSeed = 1001;

// The exponent of popularity in a cluster of so many nodes that has `exponent` at 8 nodes: flatter
// in larger ones, or the writers of one dataset, which take turns, could not keep up with its
// share.
double flattened(double exponent, uint32_t nodes);

// Each workload as it is and with four times the data ("x4"), but for wide.
// quick: 8 nodes, 2 seeds, few tasks. short: 8 and 32 nodes, 3 seeds. full: 8, 128 and 1,024 nodes,
// 10 seeds. wide: 1,024 nodes that are all candidates of each decision, 3 seeds. kNotFound names
// them.
Result<Suite> make_suite(std::string_view name);

}  // namespace tierpilot::sim

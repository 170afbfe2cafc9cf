// One learner that lives through runs of policies on a ToyCluster, every run the same workload.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "policies/placement/module.h"
#include "tests/support/toy_cluster.h"

namespace tierpilot {

class ToyRun {
 public:
  struct Score {
    double reward_mean = 0;
    double latency_term_mean = 0;
    double response_ms_mean = 0;  // from arrival to end
    double evicting_share = 0;    // of the tasks
  };

  ToyRun(const PlacementModule& learns, uint64_t seed, const ToySettings& cluster);

  // `policy`: the one that learns, or a heuristic. The learner learns from the outcomes whichever
  // it is, as many batches per experience as its settings allow.
  Score run(const std::string& policy, int tasks);
  const Learner& learner() const { return *learning_.learner; }

 private:
  Score run(Policy& policy, int tasks);
  void tell(ToyCluster& cluster, Score& sum, int& served);
  void learn();

  std::string learns_;
  uint64_t seed_;
  ToySettings cluster_;
  LearningPolicy learning_;
  uint64_t first_id_ = 0;
};

}  // namespace tierpilot

// One learner that lives through runs of policies on a ToyCluster, every run the same workload.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "policies/placement/registry.h"
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

  // `learns` is the registered name of the policy that learns. Mailboxes in `context` are made.
  ToyRun(const std::string& learns, PolicyContext context, const ToySettings& cluster);

  // `policy` is a registered name. The learner learns from the outcomes whichever it is, as many
  // batches per experience as its settings allow.
  Score run(const std::string& policy, int tasks);
  const Learner& learner() const { return *learner_; }

 private:
  void tell(ToyCluster& cluster, Score& sum, int& served);
  void learn();

  PolicyContext context_;
  ToySettings cluster_;
  std::unique_ptr<Learner> learner_;
  uint64_t first_id_ = 0;
};

}  // namespace tierpilot

// One learner that lives through runs of policies on a ToyCluster, every run the same workload.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "policies/dqn/pending.h"
#include "policies/dqn/trainer.h"
#include "tests/support/toy_cluster.h"

namespace tierpilot {

class ToyRun {
 public:
  struct Score {
    double reward_mean = 0;
    double latency_term_mean = 0;
    double response_ms_mean = 0;
    double evicting_share = 0;  // of the tasks
  };

  ToyRun(const DqnSettings& settings, const ToySettings& cluster, uint64_t seed);

  // `policy` is a registered name. The learner learns from the outcomes whichever it is, as many
  // batches per experience as its settings allow.
  Score run(const std::string& policy, int tasks);
  const Trainer& trainer() const { return trainer_; }

 private:
  void learn();

  DqnSettings settings_;
  ToySettings cluster_;
  uint64_t seed_;
  Trainer trainer_;
  std::shared_ptr<WeightsMailbox> mailbox_ = std::make_shared<WeightsMailbox>();
  PendingTable pending_{1024};
  uint64_t first_id_ = 0;
  uint64_t decisions_ = 0;
};

}  // namespace tierpilot

#include "tests/support/toy_run.h"

#include <utility>

#include "policies/placement/registry.h"

namespace tierpilot {

ToyRun::ToyRun(const PlacementModule& learns, uint64_t seed, const ToySettings& cluster)
    : learns_(learns.info.name),
      seed_(seed),
      cluster_(cluster),
      learning_(*learns.learning->start(seed, 1024)) {}

ToyRun::Score ToyRun::run(const std::string& name, int tasks) {
  return name == learns_ ? run(*learning_.policy, tasks) : run(**make_policy(name, seed_), tasks);
}

ToyRun::Score ToyRun::run(Policy& policy, int tasks) {
  ToyCluster cluster(cluster_, seed_);
  learning_.learner->copy_weights();
  Score sum;
  int served = 0;
  for (int i = 0; i < tasks; ++i) {
    const View& view = cluster.arrive();
    tell(cluster, sum, served);
    const size_t node = policy.decide(view).node;
    learning_.learner->decided(first_id_ + static_cast<uint64_t>(i), view, node);
    cluster.place(node);
    sum.response_ms_mean += cluster.last_response_s() * 1e3;
    learn();
  }
  first_id_ += static_cast<uint64_t>(tasks);
  return {sum.reward_mean / served, sum.latency_term_mean / served, sum.response_ms_mean / tasks,
          sum.evicting_share / served};
}

void ToyRun::tell(ToyCluster& cluster, Score& sum, int& served) {
  for (const auto& outcome : cluster.take_outcomes()) {
    sum.reward_mean += outcome.reward.reward;
    sum.latency_term_mean += outcome.reward.latency_term;
    sum.evicting_share += outcome.reward.evicted;
    ++served;
    learning_.learner->told(first_id_ + outcome.id, DataServed{outcome.reward});
  }
  for (const auto& end : cluster.take_ends())
    learning_.learner->told(first_id_ + end.id, Finished{end.since_decision_s});
}

void ToyRun::learn() {
  while (learning_.learner->ready()) learning_.learner->train_batch();
  learning_.learner->copy_weights_if_due();
}

}  // namespace tierpilot

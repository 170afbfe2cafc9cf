#include "tests/support/toy_run.h"

#include <utility>

#include "policies/placement/dqn/weights.h"
#include "policies/placement/published/weights.h"

namespace tierpilot {

ToyRun::ToyRun(const std::string& learns, PolicyContext context, const ToySettings& cluster)
    : context_(std::move(context)), cluster_(cluster) {
  context_.dqn_weights = std::make_shared<Mailbox<DqnWeights>>();
  context_.published_weights = std::make_shared<Mailbox<PublishedWeights>>();
  learner_ = *make_learner(learns, context_, 1024);
}

ToyRun::Score ToyRun::run(const std::string& name, int tasks) {
  const auto policy = *make_policy(name, context_);
  ToyCluster cluster(cluster_, context_.seed);
  learner_->copy_weights();
  Score sum;
  int served = 0;
  for (int i = 0; i < tasks; ++i) {
    const View& view = cluster.arrive();
    tell(cluster, sum, served);
    Observation seen;
    if (policy->needs_observation()) seen = observe(view, {context_.published.slow_share});
    const size_t node = policy->decide(view, seen).node;
    learner_->decided(first_id_ + static_cast<uint64_t>(i), view, node);
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
    learner_->served(first_id_ + outcome.id, outcome.reward);
  }
  for (const auto& end : cluster.take_ends())
    learner_->finished(first_id_ + end.id, end.since_decision_s);
}

void ToyRun::learn() {
  while (learner_->ready()) learner_->train_batch();
  learner_->copy_weights_if_due();
}

}  // namespace tierpilot

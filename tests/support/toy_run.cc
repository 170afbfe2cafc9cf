#include "tests/support/toy_run.h"

#include <utility>

#include "policies/registry.h"

namespace tierpilot {

ToyRun::ToyRun(const DqnSettings& settings, const ToySettings& cluster, uint64_t seed)
    : settings_(settings), cluster_(cluster), seed_(seed), trainer_(settings, seed) {
  mailbox_->put(trainer_.published());
}

ToyRun::Score ToyRun::run(const std::string& name, int tasks) {
  const auto policy = *make_policy(name, {seed_, settings_, mailbox_});
  ToyCluster cluster(cluster_, seed_);
  if (trainer_.changed()) mailbox_->put(trainer_.publish());
  Score sum;
  int measured = 0;
  for (int i = 0; i < tasks; ++i) {
    const View view = cluster.arrive();
    for (const auto& outcome : cluster.take_outcomes()) {
      sum.reward_mean += outcome.reward.reward;
      sum.latency_term_mean += outcome.reward.latency_term;
      sum.response_ms_mean += outcome.response_s * 1e3;
      sum.evicting_share += outcome.reward.evicted;
      ++measured;
      pending_.outcome(first_id_ + outcome.id, outcome.reward.reward);
    }
    auto seen = std::make_shared<const Observation>(observe(view, {settings_.slow_share}));
    const size_t node = policy->decide(view, *seen).node;
    pending_.decided(first_id_ + cluster.place(node), std::move(seen), view.nodes[node].slot);
    learn();
  }
  first_id_ += static_cast<uint64_t>(tasks);
  return {sum.reward_mean / measured, sum.latency_term_mean / measured,
          sum.response_ms_mean / measured, sum.evicting_share / measured};
}

void ToyRun::learn() {
  for (Experience& experience : pending_.take_complete()) trainer_.add(std::move(experience));
  while (trainer_.ready()) trainer_.train_batch();
  if (++decisions_ % settings_.copy_interval == 0 && trainer_.changed())
    mailbox_->put(trainer_.publish());
}

}  // namespace tierpilot

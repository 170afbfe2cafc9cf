#include "policies/placement/published/published_policy.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "base/random.h"
#include "policies/placement/fallback.h"
#include "policies/placement/published/exploration.h"

namespace tierpilot {
namespace {

class PublishedPolicy final : public Policy {
 public:
  PublishedPolicy(const PublishedSettings& settings, uint64_t seed,
                  std::shared_ptr<Mailbox<PublishedWeights>> weights)
      : features_(settings.features()),
        epsilon_(settings.epsilon),
        gamma_(settings.gamma),
        generator_(derived_seed(seed, "policy")),
        mailbox_(std::move(weights)) {}

  Decision decide(const View& view) override {
    const PublishedWeights* weights = mailbox_->newest();
    if (weights == nullptr)  // for a moment after it was chosen, see Learner::begin()
      return fallback_decide(view, DecisionFault::kNone, "the network is being made");
    Observation seen = observe(view, features_);
    const std::vector<float> q = weights->network.q_values(seen.values);
    const uint32_t best = greedy_slot(q, seen.candidates);
    if (best == kSlots)
      return fallback_decide(view, DecisionFault::kNotFinite,
                             "the network has no value for any candidate");
    const auto features = features_of(seen.values, best);
    const size_t unfamiliar = weights->trained_on.first_outside(features.data());
    if (unfamiliar < features.size())
      return fallback_decide(
          view, DecisionFault::kUnfamiliar,
          fmt::format("the network was not trained on such a '{}'", kSlotFeatures[unfamiliar]));
    const SlotChoice choice = choose_slot(q, seen.candidates, epsilon_, generator_);

    Decision decision;
    decision.explored = choice.explored;
    decision.weights_version = weights->version;
    decision.seen = std::move(seen.values);
    decision.q.resize(view.nodes.size());
    for (size_t i = 0; i < view.nodes.size(); ++i) {
      const NodeState& node = view.nodes[i];
      if (node.slot >= kSlots || !seen.candidates[node.slot] || !std::isfinite(q[node.slot]))
        continue;
      decision.q[i] = weights->scale.q_in_reward_units(q[node.slot], gamma_);
      if (node.slot == choice.slot) decision.node = i;
    }
    decision.reason = choice.explored ? fmt::format("explored with probability {}", epsilon_)
                                      : std::string("largest Q value");
    return decision;
  }

 private:
  FeatureSettings features_;
  double epsilon_;
  double gamma_;
  std::mt19937_64 generator_;
  std::shared_ptr<Mailbox<PublishedWeights>> mailbox_;
};

}  // namespace

std::unique_ptr<Policy> make_published_policy(const PublishedSettings& settings, uint64_t seed,
                                              std::shared_ptr<Mailbox<PublishedWeights>> weights) {
  return std::make_unique<PublishedPolicy>(settings, seed, std::move(weights));
}

}  // namespace tierpilot

#include "policies/placement/dqn/dqn_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/random.h"
#include "policies/placement/dqn/holding.h"
#include "policies/placement/fallback.h"

namespace tierpilot {
namespace {

class DqnPolicy final : public Policy {
 public:
  DqnPolicy(const DqnSettings& settings, uint64_t seed,
            std::shared_ptr<Mailbox<DqnWeights>> weights)
      : features_(settings.features),
        most_tokens_(settings.tokens),
        epsilon_(settings.epsilon),
        generator_(derived_seed(seed, "policy")),
        mailbox_(std::move(weights)) {}

  bool holds() const override { return true; }

  Decision decide(const View& view) override {
    const DqnWeights* weights = mailbox_->newest();
    if (weights == nullptr)
      return fallback_decide(view, DecisionFault::kNoWeights, "there are no weights yet");
    make_tokens(view, features_, weights->others, most_tokens_, tokens_);
    if (tokens_.count() == 0)
      return fallback_decide(view, DecisionFault::kNone, "nothing to value");
    const std::vector<float>& values = valuer_.values(*weights, tokens_);
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
      return fallback_decide(view, DecisionFault::kNotFinite,
                             "the network's values are not finite");

    Decision decision;
    size_t token =
        static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
    // What concerns the whole cluster is in every token.
    const size_t unfamiliar =
        weights->trained_on.first_outside(tokens_.features.data() + token * kTokenSize);
    if (unfamiliar < kTokenSize)
      return fallback_decide(view, DecisionFault::kUnfamiliar,
                             fmt::format("the network was not trained on such a '{}'",
                                         kTokenFeatures[unfamiliar].name));
    decision.explored = explore(values.size(), token);
    decision.node = tokens_.nodes[token];
    if (!decision.explored) hold_if_worth(view, weights->others, decision);
    decision.weights_version = weights->version;
    if (explains()) describe(view, values, token, decision);
    return decision;
  }

 private:
  // With probability epsilon another token than `token`, if there is one.
  bool explore(size_t count, size_t& token) {
    if (count < 2 || epsilon_ <= 0 || !std::bernoulli_distribution(epsilon_)(generator_))
      return false;
    const size_t other = std::uniform_int_distribution<size_t>(0, count - 2)(generator_);
    token = other < token ? other : other + 1;
    return true;
  }

  void hold_if_worth(const View& view, const ExternalityWeights& others, Decision& decision) const {
    decision.held_for = worth_waiting_for(view, features_, others, decision.node);
    if (decision.held_for != kNoNode) decision.node = kNoNode;
  }

  void describe(const View& view, const std::vector<float>& values, size_t token,
                Decision& decision) const {
    decision.q.resize(view.nodes.size());
    for (size_t t = 0; t < values.size(); ++t)
      decision.q[tokens_.nodes[t]] = values[t] * tokens_.scale_s;
    const float* seen = tokens_.features.data() + token * kTokenSize;
    decision.seen.assign(seen, seen + kTokenSize);
    decision.reason = decision.explored ? fmt::format("explored with probability {}", epsilon_)
                                        : "least expected cost";
  }

  FeatureMask features_;
  size_t most_tokens_;
  double epsilon_;
  std::mt19937_64 generator_;
  std::shared_ptr<Mailbox<DqnWeights>> mailbox_;
  TokenSet tokens_;
  TokenValuer valuer_;
};

}  // namespace

const std::vector<float>& TokenValuer::values(const DqnWeights& weights, const TokenSet& tokens) {
  values_ = tokens.prior;
  for (size_t t = 0; t < values_.size(); ++t) values_[t] += tokens.others[t];
  weights.own.add_values(tokens.features, values_, scratch_);
  return values_;
}

std::unique_ptr<Policy> make_dqn_policy(const DqnSettings& settings, uint64_t seed,
                                        std::shared_ptr<Mailbox<DqnWeights>> weights) {
  return std::make_unique<DqnPolicy>(settings, seed, std::move(weights));
}

}  // namespace tierpilot

#include "policies/placement/earliest_finish.h"

#include <fmt/format.h>

#include <random>

#include "base/random.h"
#include "policies/scheduling/delay.h"
#include "policies/scheduling/estimate.h"

namespace tierpilot {
namespace {

enum class Cost { kFinish, kMarginal, kShared };

const char* adjective(Cost cost) {
  switch (cost) {
    case Cost::kFinish:
      return "earliest";
    case Cost::kMarginal:
      return "least cost to all";
    case Cost::kShared:
      break;
  }
  return "earliest, with data counted twice";
}

class EstimatePolicy final : public Policy {
 public:
  EstimatePolicy(Cost cost, uint64_t seed)
      : cost_(cost), generator_(derived_seed(seed, "policy")) {}

  bool holds() const override { return cost_ == Cost::kShared; }

  Decision decide(const View& view) override {
    Decision decision;
    const NodeRates typical = typical_rates(view);
    const double load = cluster_load(view);
    double best_s = 0;
    size_t equals = 0;
    for (size_t i = 0; i < view.nodes.size(); ++i) {
      if (!view.nodes[i].candidate) continue;
      const double cost_s = cost_of(estimate_finish(view.task, view.nodes[i], typical), load);
      if (decision.node == kNoNode || cost_s < best_s) {
        best_s = cost_s;
        equals = 0;
      } else if (cost_s > best_s) {
        continue;
      }
      // One of k equals with probability 1/k each, in one pass.
      if (generator_() % ++equals == 0) decision.node = i;
    }
    if (explains()) describe(view, typical, load, decision);
    if (holds() && decision.node != kNoNode) {
      decision.held_for = worth_a_delay(view, typical, best_s);
      if (decision.held_for != kNoNode) decision.node = kNoNode;
    }
    return decision;
  }

 private:
  double cost_of(const FinishEstimate& estimate, double load) const {
    switch (cost_) {
      case Cost::kFinish:
        return estimate.finish_s();
      case Cost::kMarginal:
        return marginal_cost_s(estimate, load);
      case Cost::kShared:
        break;
    }
    return shared_finish_s(estimate);
  }

  void describe(const View& view, const NodeRates& typical, double load, Decision& decision) const {
    decision.q.resize(view.nodes.size());
    if (decision.node == kNoNode) {
      decision.reason = "no candidate node";
      return;
    }
    for (size_t i = 0; i < view.nodes.size(); ++i)
      if (view.nodes[i].candidate)
        decision.q[i] = -cost_of(estimate_finish(view.task, view.nodes[i], typical), load);
    const auto best = estimate_finish(view.task, view.nodes[decision.node], typical);
    decision.reason =
        fmt::format("{}: finish in {:.3f} s, after {:.3f} s of waiting and {:.3f} s for data",
                    adjective(cost_), best.finish_s(), best.wait_s, best.serve_s);
  }

  Cost cost_;
  std::mt19937_64 generator_;
};

}  // namespace

std::unique_ptr<Policy> make_earliest_finish_policy(uint64_t seed) {
  return std::make_unique<EstimatePolicy>(Cost::kFinish, seed);
}

std::unique_ptr<Policy> make_delay_finish_policy(uint64_t seed) {
  return std::make_unique<EstimatePolicy>(Cost::kShared, seed);
}

std::unique_ptr<Policy> make_least_cost_policy(uint64_t seed) {
  return std::make_unique<EstimatePolicy>(Cost::kMarginal, seed);
}

}  // namespace tierpilot

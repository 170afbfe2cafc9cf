#include "policies/earliest_finish.h"

#include <fmt/format.h>

#include <random>

#include "policies/estimate.h"

namespace tierpilot {
namespace {

class EarliestFinishPolicy final : public Policy {
 public:
  explicit EarliestFinishPolicy(uint64_t seed) : generator_(seed) {}

  bool needs_observation() const override { return false; }

  Decision decide(const View& view, const Observation&) override {
    Decision decision;
    const NodeRates typical = typical_rates(view);
    double best_s = 0;
    size_t equals = 0;
    for (size_t i = 0; i < view.nodes.size(); ++i) {
      if (!view.nodes[i].candidate) continue;
      const double finish_s = estimate_finish(view.task, view.nodes[i], typical).finish_s();
      if (decision.node == kNoNode || finish_s < best_s) {
        best_s = finish_s;
        equals = 0;
      } else if (finish_s > best_s) {
        continue;
      }
      // One of k equals with probability 1/k each, in one pass.
      if (generator_() % ++equals == 0) decision.node = i;
    }
    if (explains()) describe(view, typical, decision);
    return decision;
  }

 private:
  static void describe(const View& view, const NodeRates& typical, Decision& decision) {
    decision.q.resize(view.nodes.size());
    if (decision.node == kNoNode) {
      decision.reason = "no candidate node";
      return;
    }
    for (size_t i = 0; i < view.nodes.size(); ++i)
      if (view.nodes[i].candidate)
        decision.q[i] = -estimate_finish(view.task, view.nodes[i], typical).finish_s();
    const auto best = estimate_finish(view.task, view.nodes[decision.node], typical);
    decision.reason =
        fmt::format("earliest finish: in {:.3f} s, after {:.3f} s of waiting and {:.3f} s for data",
                    best.finish_s(), best.wait_s, best.serve_s);
  }

  std::mt19937_64 generator_;
};

}  // namespace

std::unique_ptr<Policy> make_earliest_finish_policy(uint64_t seed) {
  return std::make_unique<EarliestFinishPolicy>(seed);
}

}  // namespace tierpilot

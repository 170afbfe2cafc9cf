#include "policies/dqn/holding.h"

#include <algorithm>

namespace tierpilot {

size_t worth_waiting_for(const View& view, FeatureMask mask, const ExternalityWeights& others,
                         size_t chosen) {
  if (!view.may_hold || view.task.data_bytes == 0 || others == kNoExternality) return kNoNode;
  const auto full = [](const NodeState& node) { return node.full; };
  if (std::none_of(view.nodes.begin(), view.nodes.end(), full)) return kNoNode;
  const NodeRates typical = typical_rates(view);
  const Externality externality(view, typical, mask);
  const auto cost_s = [&](const NodeState& node) {
    const FinishEstimate estimate = estimate_finish(view.task, node, typical);
    return estimate.finish_s() + externality.cost_s(node, estimate, others);
  };
  double least_s = cost_s(view.nodes[chosen]);
  size_t best = kNoNode;
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    if (!view.nodes[i].full) continue;
    if (const double here_s = cost_s(view.nodes[i]); here_s < least_s) least_s = here_s, best = i;
  }
  return best;
}

}  // namespace tierpilot

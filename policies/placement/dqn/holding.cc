#include "policies/placement/dqn/holding.h"

#include <algorithm>

#include "policies/scheduling/delay.h"

namespace tierpilot {

size_t worth_waiting_for(const View& view, FeatureMask mask, const ExternalityWeights& others,
                         size_t chosen) {
  if (!view.may_hold || others == kNoExternality) return kNoNode;
  const auto full = [](const NodeState& node) { return node.full; };
  if (std::none_of(view.nodes.begin(), view.nodes.end(), full)) return kNoNode;
  const NodeRates typical = typical_rates(view);
  const Externality externality(view, typical, mask);
  const auto cost_s = [&](const NodeState& node) {
    const FinishEstimate estimate = estimate_finish(view.task, node, typical);
    return estimate.finish_s() + externality.cost_s(node, estimate, others);
  };
  return full_node_below(view, cost_s(view.nodes[chosen]), cost_s);
}

}  // namespace tierpilot

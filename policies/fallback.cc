#include "policies/fallback.h"

#include <fmt/format.h>

#include <utility>

#include "policies/estimate.h"

namespace tierpilot {

Decision fallback_decide(const View& view) {
  Decision decision;
  decision.q.resize(view.nodes.size());
  decision.reason = "no candidate node";
  const NodeRates typical = typical_rates(view);
  std::pair<double, double> best;
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    const NodeState& node = view.nodes[i];
    if (!node.candidate) continue;
    const double finish_s = estimate_finish(view.task, node, typical).finish_s();
    decision.q[i] = -finish_s;
    const std::pair rank(finish_s, load_of(node));
    if (decision.node != kNoNode && rank >= best) continue;
    best = rank;
    decision.node = i;
  }
  if (decision.node != kNoNode)
    decision.reason = fmt::format("earliest: finish in {:.3f} s", best.first);
  return decision;
}

Decision fallback_decide(const View& view, DecisionFault fault, std::string_view why) {
  Decision decision = fallback_decide(view);
  decision.fault = fault;
  decision.reason = fmt::format("{}: {}", why, decision.reason);
  return decision;
}

}  // namespace tierpilot

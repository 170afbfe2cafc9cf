#include "policies/placement/fallback.h"

#include <fmt/format.h>

#include <utility>

#include "policies/scheduling/delay.h"
#include "policies/scheduling/estimate.h"

namespace tierpilot {

Decision fallback_decide(const View& view) {
  Decision decision;
  decision.q.resize(view.nodes.size());
  decision.reason = "no candidate node";
  const NodeRates typical = typical_rates(view);
  std::pair<double, double> best;
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    const NodeState& node = view.nodes[i];
    if (!node.candidate && !(node.full && view.may_hold)) continue;
    const double cost_s = shared_finish_s(estimate_finish(view.task, node, typical));
    decision.q[i] = -cost_s;
    if (!node.candidate) continue;
    const std::pair rank(cost_s, load_of(node));
    if (decision.node != kNoNode && rank >= best) continue;
    best = rank;
    decision.node = i;
  }
  if (decision.node == kNoNode) return decision;
  const auto finish_s = [&](size_t i) {
    return estimate_finish(view.task, view.nodes[i], typical).finish_s();
  };
  decision.held_for = worth_a_delay(view, typical, best.first);
  if (decision.held_for != kNoNode) {
    decision.node = kNoNode;
    decision.reason =
        fmt::format("worth waiting for: finish in {:.3f} s", finish_s(decision.held_for));
  } else {
    decision.reason = fmt::format("earliest, with data counted twice: finish in {:.3f} s",
                                  finish_s(decision.node));
  }
  return decision;
}

Decision fallback_decide(const View& view, DecisionFault fault, std::string_view why) {
  Decision decision = fallback_decide(view);
  decision.fault = fault;
  decision.reason = fmt::format("{}: {}", why, decision.reason);
  return decision;
}

}  // namespace tierpilot

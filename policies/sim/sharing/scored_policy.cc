#include "policies/sim/sharing/scored_policy.h"

#include <algorithm>

#include "policies/sharing/live/closely.h"
#include "policies/sharing/live/refusal.h"

namespace tierpilot::sharing {

Request ScoredPolicy::request_of(const WaitingJob& job) const {
  Request request{.units = 1, .share = job.asked, .models = 0};
  if (request.share.milli == 0) request.share.milli = kWholeUnit;
  for (size_t type = 0; type < types_.size(); ++type)
    if (job.predicted.contains(types_[type])) request.models |= uint64_t{1} << type;
  return scorer_->given(request);
}

Node ScoredPolicy::as_node(const LiveUnit& unit) const {
  const auto type = std::find(types_.begin(), types_.end(), unit.type) - types_.begin();
  const auto free = unit.free();
  return {.model = static_cast<uint8_t>(type), .units = {{free.milli, free.memory_bytes}}};
}

std::optional<Start> ScoredPolicy::place(const std::vector<LiveNode>& nodes,
                                         const WaitingJob& job) {
  const auto request = request_of(job);
  std::vector<Node> fitting;
  std::vector<UnitAt> at;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (size_t u = 0; u < nodes[n].size(); ++u) {
      if (!job.predicted.contains(nodes[n][u].type)) continue;
      auto node = as_node(nodes[n][u]);
      if (!fits(node, request)) continue;
      fitting.push_back(std::move(node));
      at.push_back({n, u});
    }
  if (fitting.empty()) return std::nullopt;
  const auto placement = Placer(*scorer_).choose(Cluster(std::move(fitting)), request);
  if (!placement) return std::nullopt;
  const auto& chosen = at[placement->node];
  return Start{chosen.node, chosen.unit, request.share, {}, {}, "what was asked for"};
}

std::string ScoredPolicy::refusal(const LiveUnit& unit, const WaitingJob& job) const {
  return job.predicted.contains(unit.type) ? too_small(unit, request_of(job).share) : kOtherKind;
}

}  // namespace tierpilot::sharing

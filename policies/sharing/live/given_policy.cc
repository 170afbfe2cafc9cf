#include "policies/sharing/live/given_policy.h"

#include "policies/sharing/live/refusal.h"

namespace tierpilot::sharing {

Share GivenPolicy::given_of(const LiveUnit& unit, const WaitingJob& job) const {
  if (!whole_units_ && job.asked.milli > 0) return job.asked;
  return {kWholeUnit, unit.whole.memory_bytes};
}

std::optional<Start> GivenPolicy::place(const std::vector<LiveNode>& nodes, const WaitingJob& job) {
  std::optional<Start> best;
  uint32_t least = UINT32_MAX;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (size_t u = 0; u < nodes[n].size(); ++u) {
      const auto& unit = nodes[n][u];
      if (!job.predicted.contains(unit.type)) continue;
      const auto share = given_of(unit, job);
      const auto free = unit.free();
      if (free.milli < share.milli || free.memory_bytes < share.memory_bytes) continue;
      if (free.milli - share.milli >= least) continue;
      least = free.milli - share.milli;
      best = Start{
          n,  u,  share,
          {}, {}, whole_units_ ? "an idle unit" : "what was asked for, where the least is left"};
    }
  return best;
}

std::string GivenPolicy::refusal(const LiveUnit& unit, const WaitingJob& job) const {
  return job.predicted.contains(unit.type) ? too_small(unit, given_of(unit, job)) : kOtherKind;
}

}  // namespace tierpilot::sharing

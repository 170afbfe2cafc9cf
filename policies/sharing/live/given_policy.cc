#include "policies/sharing/live/given_policy.h"

namespace tierpilot::sharing {

std::optional<Start> GivenPolicy::place(const std::vector<LiveNode>& nodes, const WaitingJob& job) {
  std::optional<Start> best;
  uint32_t least = UINT32_MAX;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (size_t u = 0; u < nodes[n].size(); ++u) {
      const auto& unit = nodes[n][u];
      if (!job.predicted.contains(unit.type)) continue;
      Share share{kWholeUnit, unit.whole.memory_bytes};
      if (!whole_units_ && job.asked.milli > 0) share = job.asked;
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

}  // namespace tierpilot::sharing

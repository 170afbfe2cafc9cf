// One target of a paging loop, and what is known of it. Internal.
#pragma once

#include <algorithm>
#include <cmath>

#include "daemon/memory/loop/paging_loop.h"

namespace tierpilot {

// Memory that could not be moved lately.
struct PagingRefusal {
  uint64_t start = 0, end = 0;
  int64_t until_ns = 0;
};

struct PagingLoop::Watched {
  LoopTarget target;
  std::unique_ptr<HeatTracker> tracker;  // null: heat makes no difference
  HeatMap heat;
  std::vector<TrackedRange> ranges;
  std::vector<PagingChunk> chunks;
  std::vector<PagingRefusal> refusals;
  int64_t mappings_ns = 0;  // when they were read; 0: never
  int64_t sampled_ns = 0;
  int64_t paced_ns = 0;  // when the tracker's effort was looked at
  int64_t paced_cpu_ns = 0;
  int64_t most_cpu_ns = 0;
  bool ended = false;
  std::string trouble;

  // `silent`: why none of the trackers is asked now; nothing: they are.
  Result<std::vector<AccessSample>> look(const std::optional<Error>& silent) {
    if (!tracker) return std::vector<AccessSample>{};
    if (silent) return tl::unexpected(*silent);
    return tracker->sample(ranges);
  }
  // The variance of a mean whose weights fall by `keep` from one sample to the next is that of
  // (1 + keep) / (1 - keep) samples.
  HeatEvidence evidence(double elapsed_s) const {
    const double keep = std::exp2(-elapsed_s / heat.half_life_s());
    return {.observed_s = tracker ? tracker->observed_s() : 0,
            .updates_in_mean = (1 + keep) / std::max(1 - keep, 1e-3)};
  }
  // Also of a kernel thread that has ended, and then tells nothing any more.
  int64_t tracker_cpu_ns() {
    if (tracker) most_cpu_ns = std::max(most_cpu_ns, tracker->kernel_cpu_ns());
    return most_cpu_ns;
  }

  // What could not be moved lately is left out of plans.
  void forget_refused(int64_t now_ns) {
    std::erase_if(refusals, [now_ns](const auto& refusal) { return refusal.until_ns <= now_ns; });
    for (auto& chunk : chunks)
      for (const auto& refusal : refusals)
        if (chunk.start < refusal.end && refusal.start < chunk.end) chunk.heat_known = false;
  }
};

}  // namespace tierpilot

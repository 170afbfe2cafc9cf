// What an access to each tier takes right now, under whatever load there is: a short pointer chase
// of our own through memory of the tier, in place of the queue counters of Colloid, which are those
// of one CPU maker's PMU.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "daemon/memory/paging/plan.h"

namespace tierpilot {

struct LoadedLatencyOptions {
  // Per tier, for as long as the probe lives. More than the last-level cache holds of it between
  // two looks, which continue where the one before ended.
  uint64_t footprint_bytes = 16 << 20;
  size_t hops = 1024;  // per tier and look: some 0.1 to 0.5 ms
};

// One thread at a time.
class LoadedLatencyProbe {
 public:
  // Allocates on the first node of each tier.
  explicit LoadedLatencyProbe(const std::vector<PagingTier>& tiers,
                              const LoadedLatencyOptions& options = {});
  ~LoadedLatencyProbe();

  // Sets loaded_latency_ns, smoothed over the latest looks, or the reason why it is not known.
  // `tiers` are those it was made for.
  void refresh(std::vector<PagingTier>& tiers);

 private:
  struct Sentinel;
  const LoadedLatencyOptions options_;
  std::vector<Sentinel> sentinels_;  // one per tier
};

}  // namespace tierpilot

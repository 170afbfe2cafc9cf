// The best tracker that this machine has, and why it is not another one.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "daemon/memory/heat/tracker.h"

namespace tierpilot {

class TrackerChoice {
 public:
  // Best first: DAMON, NUMA hints, soft-dirty, fault addresses. Outlives nothing; `clock` and what
  // `sysroot` shows must outlive it.
  TrackerChoice(const Sysroot& sysroot, const Clock& clock);
  explicit TrackerChoice(std::vector<std::unique_ptr<TrackerSource>> sources);

  std::vector<TrackerOffer> offers() const;
  // The first available one that may watch `pid` (0: whatever is to be watched), or the one of
  // `wanted`; kUnavailable lists every reason.
  Result<TrackerSource*> choose(std::optional<TrackerKind> wanted = {}, pid_t pid = 0) const;

 private:
  std::vector<std::unique_ptr<TrackerSource>> sources_;
};

}  // namespace tierpilot

// The kernel's data access monitor as a tracker: through its files where this process may write
// them, else through tierpilot-damon, which keeps them for others.
#pragma once

#include <memory>
#include <vector>

#include "daemon/memory/damon/access.h"
#include "daemon/memory/heat/tracker.h"

namespace tierpilot {

struct DamonOptions {
  DamonAttrs attrs;
  // With less CPU time to spend it looks less often, down to this; an aggregation then takes
  // longer, or has fewer looks where it may not.
  int64_t slowest_sample_us = 100'000;
  int min_checks = 20;  // per aggregation
};

class DamonSource final : public TrackerSource {
 public:
  explicit DamonSource(const Sysroot& sysroot, DamonOptions options = {});
  // The first of `ways` that is open to this process is taken.
  DamonSource(std::vector<std::unique_ptr<DamonAccess>> ways, DamonOptions options);
  ~DamonSource() override;
  TrackerOffer offer() const override;
  Status open() override;
  // kExhausted when as many processes are watched as can be.
  Result<std::unique_ptr<HeatTracker>> make(pid_t pid) override;

 private:
  Result<DamonAccess*> find_way() const;

  const std::vector<std::unique_ptr<DamonAccess>> ways_;
  const DamonOptions options_;
  const TrackerTraits traits_;
  DamonAccess* open_ = nullptr;  // one of ways_
};

}  // namespace tierpilot

// DAMON, the kernel's data access monitor, on one process's virtual addresses, through
// /sys/kernel/mm/damon/admin (Documentation/admin-guide/mm/damon/usage.rst).
//
// kdamonds belong to whoever made them: where there are some already, the tracker is unavailable
// and nothing is written. Ours are removed at the end; those that a killed predecessor left are
// known by a claim file that nobody locks, and removed by the next DamonSource that is made.
#pragma once

#include <memory>

#include "daemon/memory/heat/tracker.h"

namespace tierpilot {

struct DamonOptions {
  int64_t sample_us = 5'000;         // accessed bits are looked at so often, a page per region
  int64_t aggregation_us = 200'000;  // hits are counted over it; a sample waits for its end
  int64_t update_us = 1'000'000;     // new mappings are noticed so often
  int min_regions = 20;
  int max_regions = 300;  // bounds the kernel's work, and that of reading it out
  // With less CPU time to spend it looks less often, down to this; an aggregation then takes
  // longer.
  int64_t slowest_sample_us = 100'000;
  int min_checks = 20;    // per aggregation
  int max_processes = 8;  // the number of kdamonds is set once, and all must be off then
  std::string claim_path = "/run/tierpilot-damon.claim";  // below the sysroot
};

class DamonClaim;

class DamonSource final : public TrackerSource {
 public:
  explicit DamonSource(const Sysroot& sysroot, DamonOptions options = {});
  ~DamonSource() override;
  TrackerOffer offer() const override;
  Status open() override;
  // kExhausted when max_processes are watched already.
  Result<std::unique_ptr<HeatTracker>> make(pid_t pid) override;

 private:
  const Sysroot& sysroot_;
  DamonOptions options_;
  TrackerTraits traits_;
  std::shared_ptr<DamonClaim> claim_;
};

}  // namespace tierpilot

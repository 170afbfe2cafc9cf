// Pages written since the last look, by the kernel's soft-dirty bits (CONFIG_MEM_SOFT_DIRTY): "4"
// to /proc/<pid>/clear_refs, then bit 55 of /proc/<pid>/pagemap.
#pragma once

#include "daemon/memory/heat/tracker.h"

namespace tierpilot {

class SoftDirtySource final : public TrackerSource {
 public:
  SoftDirtySource(const Sysroot& sysroot, const Clock& clock) : sysroot_(sysroot), clock_(clock) {}
  TrackerOffer offer() const override;
  Status may_watch(pid_t pid) const override;
  Status open() override { return offer().available; }
  Result<std::unique_ptr<HeatTracker>> make(pid_t pid) override;

 private:
  const Sysroot& sysroot_;
  const Clock& clock_;
};

// A look at `entries`, the pagemap words of the base pages from `start` on: adds a sample for each
// run of blocks of `block_pages` with
// the same share of dirty pages.
void add_dirty_samples(std::span<const uint64_t> entries, uint64_t start, size_t block_pages,
                       double interval_s, std::vector<AccessSample>& samples);

}  // namespace tierpilot

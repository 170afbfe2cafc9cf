// Page faults and their addresses, through BPF. With the kernel's NUMA balancing on, resident pages
// are unmapped in turn, so that faults are a sample of all accesses (kNumaHint); with it off they
// are what happens anyhow (kFaultAddress).
#pragma once

#include <map>

#include "daemon/memory/heat/tracker.h"

namespace tierpilot {

class FaultRecorder;

class FaultSource final : public TrackerSource {
 public:
  // `kind` is kNumaHint or kFaultAddress.
  FaultSource(TrackerKind kind, const Sysroot& sysroot, const Clock& clock);
  ~FaultSource() override;
  TrackerOffer offer() const override;
  Status open() override;
  Result<std::unique_ptr<HeatTracker>> make(pid_t pid) override;

 private:
  Status hints_available() const;

  TrackerTraits traits_;
  const Sysroot& sysroot_;
  const Clock& clock_;
  std::shared_ptr<FaultRecorder> recorder_;
};

using FaultCounts = std::map<uint64_t, uint64_t>;  // by page address

// Adjacent pages with the same count become one sample. `interval_s` is positive.
std::vector<AccessSample> samples_of_faults(const FaultCounts& faults, double interval_s);

}  // namespace tierpilot

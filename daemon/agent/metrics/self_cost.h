// What the daemon itself costs this machine.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/result.h"

namespace tierpilot::agent {

// CPU time of this process as a share of one core between two calls. Owned by one thread.
class SelfCost {
 public:
  explicit SelfCost(const Clock& clock);
  // kUnavailable when no time has passed since the last call.
  Result<double> cpu_share();
  static Result<uint64_t> resident_bytes();

 private:
  const Clock& clock_;
  int64_t last_boot_ns_;
  int64_t last_cpu_ns_;
};

}  // namespace tierpilot::agent

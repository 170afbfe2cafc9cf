// The wall clock for how old something is: one that jumps must not make it old.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace tierpilot {

// Follows the wall clock, but never gains on it faster than time passes: within an hour it goes
// forward by two at most. What is kept for a month is kept for half a month at least, whatever the
// wall clock does, and a clock that was away for a day has caught up after another.
class HistoryClock {
 public:
  HistoryClock(const Clock& clock, int64_t now_ms)
      : clock_(clock), now_ms_(now_ms), read_at_ns_(clock.boot_ns()) {}
  int64_t now_ms();

 private:
  const Clock& clock_;
  int64_t now_ms_;
  int64_t read_at_ns_;  // boot time
};

}  // namespace tierpilot

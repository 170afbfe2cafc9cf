// Keeps a hostile peer from filling the log: one line a second, which counts those left out.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace tierpilot {

class LogLimiter {
 public:
  explicit LogLimiter(const Clock& clock = system_clock()) : clock_(clock) {}

  // Whether to write this line; then `suppressed` is the number of lines left out before it.
  bool admit(uint64_t& suppressed) {
    const int64_t now_ns = clock_.boot_ns();
    if (now_ns < next_ns_) {
      ++suppressed_;
      return false;
    }
    next_ns_ = now_ns + kIntervalNs;
    suppressed = suppressed_;
    suppressed_ = 0;
    return true;
  }

 private:
  static constexpr int64_t kIntervalNs = 1'000'000'000;

  const Clock& clock_;
  int64_t next_ns_ = 0;
  uint64_t suppressed_ = 0;
};

}  // namespace tierpilot

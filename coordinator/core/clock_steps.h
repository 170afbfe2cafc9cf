// Notices that somebody set the clock, so that spans which began before are not taken for longer or
// shorter than they are. Event loop thread only.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "base/clock.h"

namespace tierpilot {

class ClockSteps {
 public:
  explicit ClockSteps(const Clock& clock) : clock_(clock), offset_ms_(offset_ms()) {}

  // By how much it was set ahead since the last call, less than 0: back; 0: it was not. What a
  // clock is steered by from call to call is less than a second.
  int64_t taken_ms() {
    const int64_t now_ms = offset_ms(), step_ms = now_ms - offset_ms_;
    offset_ms_ = now_ms;
    return std::abs(step_ms) < kLeast_ms ? 0 : step_ms;
  }

 private:
  static constexpr int64_t kLeast_ms = 1000;
  int64_t offset_ms() const { return clock_.wall_ms() - clock_.boot_ns() / 1'000'000; }

  const Clock& clock_;
  int64_t offset_ms_;
};

}  // namespace tierpilot

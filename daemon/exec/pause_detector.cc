#include "daemon/exec/pause_detector.h"

#include <algorithm>
#include <cstdlib>

namespace tierpilot {
namespace {

constexpr int64_t kNsPerS = 1'000'000'000;
// By how much two clocks that nobody stops come apart: both may be slewed by 500 ppm.
constexpr int64_t kDriftPerMillion = 1'000;
// Within which a clock that was set by another one is level with it.
constexpr int64_t kLevelNs = 50'000'000;

}  // namespace

int64_t PauseDetector::paused_ns(const ClockReading& reading) {
  const int64_t hardware_ns = reading.hardware_s * kNsPerS;
  Seen now{.hardware_ahead = {hardware_ns - reading.boot_after_ns,
                              hardware_ns + kNsPerS - reading.boot_before_ns},
           .wall_ahead_ns = reading.wall_ns - reading.boot_after_ns,
           .boot_ns = reading.boot_after_ns};
  if (!last_) {
    last_ = now;
    return 0;
  }
  const int64_t drift_ns =
      std::max<int64_t>(now.boot_ns - last_->boot_ns, 0) / 1'000'000 * kDriftPerMillion;
  const Span before{last_->hardware_ahead.low_ns - drift_ns,
                    last_->hardware_ahead.high_ns + drift_ns};
  Span& ahead = now.hardware_ahead;
  int64_t paused_ns = 0;
  if (ahead.low_ns > before.high_ns) {
    if (!was_set(before, now)) paused_ns = ahead.high_ns - before.low_ns;
  } else if (ahead.high_ns >= before.low_ns) {
    ahead = {std::max(ahead.low_ns, before.low_ns), std::min(ahead.high_ns, before.high_ns)};
  }
  last_ = now;
  return paused_ns;
}

// By the wall clock, as the kernel does when that is synchronized: now they are level, and were not
// before, and it is not the wall clock that has moved.
bool PauseDetector::was_set(const Span& before, const Seen& now) const {
  return now.hardware_ahead.holds(now.wall_ahead_ns, kLevelNs) &&
         !before.holds(last_->wall_ahead_ns, kLevelNs) &&
         std::abs(now.wall_ahead_ns - last_->wall_ahead_ns) < kLevelNs;
}

}  // namespace tierpilot

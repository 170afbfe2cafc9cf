#include "base/history_clock.h"

#include <algorithm>

namespace tierpilot {

int64_t HistoryClock::now_ms() {
  const int64_t boot_ns = clock_.boot_ns();
  const int64_t passed_ms = (boot_ns - read_at_ns_) / 1'000'000;
  now_ms_ = std::min(clock_.wall_ms(), now_ms_ + 2 * passed_ms);
  read_at_ns_ += passed_ms * 1'000'000;
  return now_ms_;
}

}  // namespace tierpilot

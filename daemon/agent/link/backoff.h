// How long to wait before trying again: doubling, with jitter so that a hundred nodes do not come
// back in step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

namespace tierpilot::agent {

class Backoff {
 public:
  Backoff(int64_t first_ms, int64_t max_ms, uint64_t seed)
      : first_ms_(first_ms), max_ms_(max_ms), random_(static_cast<uint32_t>(seed)) {}

  // Between half of the step and the step. `lease_left_ms`: work that runs ends then unless the
  // coordinator is back by then, so that there are several tries until then; 0: there is none.
  int64_t next_ms(int64_t lease_left_ms = 0) {
    step_ms_ = std::clamp(step_ms_ * 2, first_ms_, max_ms_);
    const auto delay_ms =
        std::uniform_int_distribution<int64_t>((step_ms_ + 1) / 2, step_ms_)(random_);
    if (lease_left_ms <= 0) return delay_ms;
    return std::min(delay_ms, std::max(first_ms_, lease_left_ms / kTriesOfLease));
  }
  // Goes to the longest step at once: what stands in the way will not pass soon.
  int64_t longest_ms() {
    step_ms_ = max_ms_;
    return next_ms();
  }
  void reset() { step_ms_ = 0; }

 private:
  static constexpr int64_t kTriesOfLease = 8;

  int64_t first_ms_, max_ms_;
  int64_t step_ms_ = 0;
  std::minstd_rand random_;
};

}  // namespace tierpilot::agent

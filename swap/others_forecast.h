// What the device is expected to hold beside saved storages in the intervals of a step.
#pragma once

#include <algorithm>

#include "policies/swap/learning/observed_step.h"

namespace tierpilot::swap {

class OthersForecast {
 public:
  void begin_step() { largest_bytes_ = largest_other_bytes_ = 0; }
  // A save of the step; `other_bytes` were there beside saved storages in the interval before.
  void saved(int64_t bytes, int64_t other_bytes) {
    largest_bytes_ = std::max(largest_bytes_, bytes);
    largest_other_bytes_ = std::max(largest_other_bytes_, other_bytes);
  }
  // The most in the intervals that end with events `from` to `to` of the expected step, which may
  // be nullptr; never less than `now_bytes`.
  int64_t most_bytes(const ObservedStep* expected, size_t from, size_t to,
                     int64_t now_bytes) const {
    if (!expected) return std::max(now_bytes, largest_other_bytes_) + kOperands * largest_bytes_;
    const auto end = std::min(to + 1, expected->other_bytes.size());
    auto most = now_bytes;
    for (size_t at = from; at < end; ++at) most = std::max(most, expected->other_bytes[at]);
    return most;
  }

 private:
  // Of the largest saved size: room for what an unknown step does next.
  static constexpr int64_t kOperands = 3;
  int64_t largest_bytes_ = 0, largest_other_bytes_ = 0;
};

}  // namespace tierpilot::swap

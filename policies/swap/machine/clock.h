// The time of a replay, and how much of it was spent waiting for copies.
#pragma once

#include <cstdint>

namespace tierpilot::swap {

class ReplayClock {
 public:
  int64_t now_ns() const { return now_ns_; }
  int64_t stalls() const { return stalls_; }
  int64_t stall_ns() const { return stall_ns_; }

  void compute(int64_t ns) { now_ns_ += ns; }
  // Nothing where that time has passed.
  void stall_until(int64_t ns) {
    if (ns <= now_ns_) return;
    ++stalls_;
    stall_ns_ += ns - now_ns_;
    now_ns_ = ns;
  }

 private:
  int64_t now_ns_ = 1, stalls_ = 0, stall_ns_ = 0;
};

}  // namespace tierpilot::swap

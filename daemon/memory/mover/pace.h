// Time that can be waited for, and bytes per second.
#pragma once

#include <cstdint>
#include <stop_token>

#include "base/clock.h"

namespace tierpilot {

class Pacer : public Clock {
 public:
  // Waits until boot_ns() is there. False when `stop` was requested first.
  virtual bool sleep_until(int64_t boot_ns, std::stop_token stop) = 0;
  // CPU time of the calling thread so far.
  virtual int64_t thread_cpu_ns() const = 0;
};

class SystemPacer final : public Pacer {
 public:
  int64_t boot_ns() const override { return system_clock().boot_ns(); }
  int64_t wall_ms() const override { return system_clock().wall_ms(); }
  bool sleep_until(int64_t boot_ns, std::stop_token stop) override;
  int64_t thread_cpu_ns() const override;
};

// At most `bytes_per_s` over any stretch of time, give or take one batch. 0: no limit.
class RateLimiter {
 public:
  explicit RateLimiter(uint64_t bytes_per_s) : bytes_per_s_(bytes_per_s) {}
  // Takes the bytes, and returns when they may be moved.
  int64_t take(uint64_t bytes, int64_t now_ns);

 private:
  uint64_t bytes_per_s_;
  int64_t free_from_ns_ = 0;
};

}  // namespace tierpilot

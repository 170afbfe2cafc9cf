// The daemon's side of its lease: until when its tasks may run.
//
// The lease counts from the moment a request was *sent*, because the coordinator counts from the
// moment it answered, which is later: the daemon's end always comes first. The margin leaves room
// for killing what runs.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tierpilot::agent {

class Lease {
 public:
  static constexpr int64_t kNever = 0;

  // Times are CLOCK_BOOTTIME nanoseconds.
  void granted(int64_t sent_ns, uint32_t lease_ms) {
    const int64_t length_ns = static_cast<int64_t>(lease_ms) * 1'000'000;
    const int64_t margin_ns = std::min<int64_t>(length_ns / 5, 1'000'000'000);
    deadline_ns_ = std::max(deadline_ns_, sent_ns + length_ns - margin_ns);
    lease_ms_ = lease_ms;
  }
  bool holds(int64_t now_ns) const { return now_ns < deadline_ns_; }
  int64_t deadline_ns() const { return deadline_ns_; }
  int64_t left_ms(int64_t now_ns) const {
    return std::max<int64_t>(deadline_ns_ - now_ns, 0) / 1'000'000;
  }
  // Three chances to renew within a lease.
  int64_t heartbeat_ms() const { return std::max<int64_t>(lease_ms_ / 3, 50); }
  uint32_t lease_ms() const { return lease_ms_; }

 private:
  int64_t deadline_ns_ = kNever;
  uint32_t lease_ms_ = 0;
};

}  // namespace tierpilot::agent

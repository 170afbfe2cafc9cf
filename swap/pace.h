// How fast copies of one direction really are: bytes by the time in which at least one was under
// way, the latest counting most.
#pragma once

#include <cstdint>

namespace tierpilot::swap {

class Pace {
 public:
  explicit Pace(double gb_per_s) : gb_per_s_(gb_per_s) {}
  void began(int64_t now_ns) {
    if (running_++ == 0) since_ns_ = now_ns;
  }
  void ended(int64_t now_ns, int64_t bytes) {
    bytes_ += bytes;
    if (--running_ > 0 && bytes_ < kEnough) return;
    busy_ns_ += now_ns - since_ns_;
    since_ns_ = now_ns;
    if (bytes_ < kEnough || busy_ns_ <= 0) return;
    const double latest = static_cast<double>(bytes_) / static_cast<double>(busy_ns_);
    gb_per_s_ += kWeight * (latest - gb_per_s_);
    bytes_ = busy_ns_ = 0;
  }
  double gb_per_s() const { return gb_per_s_; }

 private:
  static constexpr int64_t kEnough = 32 << 20;  // bytes that a figure is taken of
  static constexpr double kWeight = 0.3;
  double gb_per_s_;
  int running_ = 0;
  int64_t since_ns_ = 0, busy_ns_ = 0, bytes_ = 0;
};

}  // namespace tierpilot::swap

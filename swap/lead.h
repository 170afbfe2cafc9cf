// How much earlier than they take copies in begin, as a factor of their time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tierpilot::swap {

// What came late begins earlier the next time. Earlier than is needed it fills the device, so that
// free memory has to be given back and taken anew: what came in time begins later.
class Lead {
 public:
  double factor() const { return factor_; }
  // A step took so long, of which it waited for copies.
  void step_ended(int64_t step_ns, int64_t stall_ns) {
    if (stall_ns > step_ns / 50)
      factor_ = std::min(factor_ * 1.3, 8.0);
    else if (stall_ns < step_ns / 500)
      factor_ = std::max(factor_ * 0.95, 1.0);
  }

 private:
  double factor_ = 2;
};

}  // namespace tierpilot::swap

// CPU time that a task may still use in this period, where the kernel enforces no quota: its cores'
// time is added at each period's begin, and with nothing left it stands still until the next
// (the token scheme of SLAQ, SoCC 2017; here by what was really used). Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tierpilot::agent {

class CpuTokens {
 public:
  static constexpr int64_t kPeriodNs = 100'000'000;

  // At a period's begin. What it did not use does not add up; what it used too much is owed.
  void refill(double cores) {
    const auto quota = static_cast<int64_t>(cores * kPeriodNs);
    left_ns_ = std::min(left_ns_ + quota, quota);
  }
  void spend(int64_t used_ns) { left_ns_ -= used_ns; }
  bool may_run() const { return left_ns_ > 0; }

 private:
  int64_t left_ns_ = 0;
};

}  // namespace tierpilot::agent

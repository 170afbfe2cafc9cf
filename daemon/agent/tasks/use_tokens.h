// Time of a unit's compute that a task may still use in this period, where nothing else holds it to
// its share: a quota is added at each period's begin, and with nothing left the task stands still
// until the next (the token scheme of SLAQ, SoCC 2017; here by what was really used). Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tierpilot::agent {

class UseTokens {
 public:
  // At a period's begin. What it did not use does not add up; what it used too much is owed.
  void refill(int64_t quota_ns) { left_ns_ = std::min(left_ns_ + quota_ns, quota_ns); }
  void spend(int64_t used_ns) { left_ns_ -= used_ns; }
  bool may_run() const { return left_ns_ > 0; }

 private:
  int64_t left_ns_ = 0;
};

}  // namespace tierpilot::agent

// CPU time that a background thread may take: a share of one core on average, with what was not
// used saved up for busy moments.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tierpilot {

class CpuCredit {
 public:
  // share 0: no limit. Begins with all that can be saved up.
  CpuCredit(double share, int64_t burst_ns)
      : share_(share), burst_ns_(burst_ns), left_ns_(burst_ns) {}

  bool limited() const { return share_ > 0; }
  bool covers(int64_t cpu_ns) const { return !limited() || cpu_ns <= left_ns_; }
  int64_t left_ns() const { return std::max<int64_t>(left_ns_, 0); }

  // After `elapsed_ns` in which the thread took `own_ns`, and others `helpers_ns` on its behalf;
  // helpers whom rest does not stop are charged no more than was earned. Returns for how long the
  // thread must rest; not positive: it need not.
  int64_t settle(int64_t own_ns, int64_t helpers_ns, int64_t elapsed_ns) {
    if (!limited()) return 0;
    const auto earned_ns = static_cast<int64_t>(share_ * static_cast<double>(elapsed_ns));
    left_ns_ = std::min(left_ns_ + earned_ns, burst_ns_) - own_ns - std::min(helpers_ns, earned_ns);
    return static_cast<int64_t>(static_cast<double>(-left_ns_) / share_);
  }

 private:
  double share_;
  int64_t burst_ns_;
  int64_t left_ns_;
};

}  // namespace tierpilot

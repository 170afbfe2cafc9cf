#pragma once

#include <algorithm>

namespace tierpilot {

// What a task says it does is not checked: as many operations as any processor might have done.
inline double believable_operations(double operations, double seconds) {
  return std::clamp(operations, 1e8 * seconds, 1e12 * seconds);
}

// A rate over what was done lately: the last 1 / (1 - kept) or so pieces of work count.
class WorkRate {
 public:
  explicit WorkRate(double kept = 0.9) : kept_(kept) {}
  void add(double amount, double seconds) {
    if (!(amount > 0) || !(seconds > 0)) return;
    amount_ = kept_ * amount_ + amount;
    seconds_ = kept_ * seconds_ + seconds;
  }
  double per_s() const { return seconds_ > 0 ? amount_ / seconds_ : 0; }  // 0: not known yet

 private:
  double kept_;
  double amount_ = 0;
  double seconds_ = 0;
};

}  // namespace tierpilot

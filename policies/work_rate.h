#pragma once

namespace tierpilot {

// A rate over what was done lately: the last ten or so pieces of work count.
class WorkRate {
 public:
  void add(double amount, double seconds) {
    if (!(amount > 0) || !(seconds > 0)) return;
    amount_ = kKept * amount_ + amount;
    seconds_ = kKept * seconds_ + seconds;
  }
  double per_s() const { return seconds_ > 0 ? amount_ / seconds_ : 0; }  // 0: not known yet

 private:
  static constexpr double kKept = 0.9;
  double amount_ = 0;
  double seconds_ = 0;
};

}  // namespace tierpilot

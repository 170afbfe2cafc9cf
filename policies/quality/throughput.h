// How much faster a job is with more cores (Amdahl, AFIPS 1967).
#pragma once

#include <vector>

namespace tierpilot::quality {

// Speed beside one core's. Below one core a job has a part of its time.
double amdahl_speed(double cores, double serial_share);

// Fitted to measured speeds, one mean for each number of cores that was tried.
class Throughput {
 public:
  // `iterations_s` measured on `cores`. Values that are not finite and above zero are ignored.
  void add(double cores, double iterations_s);
  // Speed on `cores` beside one core. With few measurements a usual serial share is assumed.
  double speed(double cores) const { return amdahl_speed(cores, serial_share_); }
  double serial_share() const { return serial_share_; }

 private:
  struct Measured {
    double cores, iterations_s, count;
  };
  void fit();

  std::vector<Measured> measured_;
  double serial_share_ = 0.05;
};

}  // namespace tierpilot::quality

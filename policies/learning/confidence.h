// Intervals for a running mean that hold at every look, however often and whenever one looks.
#pragma once

#include <cstdint>

namespace tierpilot {

struct MeanInterval {
  uint64_t count = 0;
  double mean = 0;  // of no meaning without a value
  double low = 0;
  double high = 0;
};

// The predictable plug-in empirical-Bernstein confidence sequence (Waudby-Smith and Ramdas,
// "Estimating means of bounded random variables by betting", JRSS B 86(1), 2024, theorem 2): with
// probability 1 - `miss` the mean is within it at all times, for any distribution on [low, high].
class ConfidenceSequence {
 public:
  ConfidenceSequence(double low, double high, double miss);

  // Brought into [low, high]; what is not a number is left out.
  void add(double value);
  // The whole range before the first value.
  MeanInterval interval() const;
  uint64_t count() const { return count_; }

 private:
  double low_;
  double range_;
  double log_miss_;  // log(2 / miss)
  uint64_t count_ = 0;
  double sum_ = 0;        // of the values, brought to [0, 1] as all that follows
  double squares_ = 0;    // around the running mean
  double bets_ = 0;       // sum of lambda
  double weighted_ = 0;   // sum of lambda x
  double penalties_ = 0;  // sum of v psi(lambda)
};

}  // namespace tierpilot

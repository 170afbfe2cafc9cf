// What an iteration costs: CPU seconds = c S, with S the bytes or samples that it works on.
#pragma once

#include <optional>

namespace tierpilot::quality {

// Linear regression through the origin, in which old iterations fade. Three reports in a row that
// are twice as dear or half as cheap as foretold mean that the program has changed: it begins anew.
class IterationCost {
 public:
  // Values that are not finite and above zero are ignored.
  void add(double size, double cpu_s);
  std::optional<double> cpu_s(double size) const;  // nothing before the first report

 private:
  double size_cost_ = 0, size_size_ = 0;
  int surprises_ = 0;
};

}  // namespace tierpilot::quality

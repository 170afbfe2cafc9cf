#include "tests/bench/passive/paired.h"

#include <algorithm>
#include <cmath>

namespace tierpilot {

Comparison compare(size_t pairs, const Run& off, const Run& on) {
  Comparison result;
  for (size_t i = 0; i < pairs; ++i) {
    const bool off_first = i % 2 == 0;
    const double first = off_first ? off() : on();
    const double second = off_first ? on() : off();
    if (first <= 0 || second <= 0) return {};
    result.off.push_back(off_first ? first : second);
    result.on.push_back(off_first ? second : first);
    result.cost_percent.push_back((1 - result.on.back() / result.off.back()) * 100);
  }
  return result;
}

double interpolated_quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const auto above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], at - std::floor(at));
}

Interval median_interval(std::vector<double> values) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  const double rank = std::floor((n - 1.96 * std::sqrt(n)) / 2);
  const auto low = static_cast<size_t>(std::max(rank, 0.0));
  return {values[low], values[values.size() - 1 - low]};
}

}  // namespace tierpilot

#include "base/statistics.h"

#include <algorithm>
#include <cstddef>

namespace tierpilot {

double median(std::vector<double> values) {
  const double upper = upper_median_in_place(values);
  if (values.empty() || values.size() % 2 == 1) return upper;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  return (*std::max_element(values.begin(), middle) + upper) / 2;
}

double upper_median(std::vector<double> values) {
  return upper_median_in_place(values);
}

double upper_median_in_place(std::span<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<size_t>(rank)];
}

}  // namespace tierpilot

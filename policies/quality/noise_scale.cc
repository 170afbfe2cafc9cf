#include "policies/quality/noise_scale.h"

#include <algorithm>
#include <cmath>

namespace tierpilot::quality {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double noise_deviation(std::span<const double> losses) {
  if (losses.size() < 3) return 0;
  std::vector<double> differences;
  for (size_t i = 1; i + 1 < losses.size(); ++i)
    differences.push_back(std::abs(losses[i - 1] - 2 * losses[i] + losses[i + 1]));
  constexpr double kMedianOfNormal = 0.6745;
  return median(std::move(differences)) / kMedianOfNormal / std::sqrt(6.0);
}

}  // namespace tierpilot::quality

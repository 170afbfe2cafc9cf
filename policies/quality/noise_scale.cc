#include "policies/quality/noise_scale.h"

#include <cmath>
#include <vector>

#include "base/statistics.h"

namespace tierpilot::quality {

double noise_deviation(std::span<const double> losses) {
  if (losses.size() < 3) return 0;
  std::vector<double> differences;
  for (size_t i = 1; i + 1 < losses.size(); ++i)
    differences.push_back(std::abs(losses[i - 1] - 2 * losses[i] + losses[i + 1]));
  constexpr double kMedianOfNormal = 0.6745;
  return upper_median(std::move(differences)) / kMedianOfNormal / std::sqrt(6.0);
}

}  // namespace tierpilot::quality

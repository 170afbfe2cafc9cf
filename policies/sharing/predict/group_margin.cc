#include "policies/sharing/predict/group_margin.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace tierpilot::sharing {
namespace {

constexpr double kGroups = 0.99;
constexpr double kRows = 0.995;  // of a group's rows; 1 % may be under-predicted

double upper_of(std::vector<double> rows) {
  if (rows.empty()) return 0;
  std::sort(rows.begin(), rows.end());
  const auto at = static_cast<size_t>(kRows * static_cast<double>(rows.size()));
  return rows[std::min(at, rows.size() - 1)];
}

}  // namespace

double group_margin(const std::vector<std::vector<double>>& exceeds) {
  std::vector<double> uppers;
  for (const auto& rows : exceeds) uppers.push_back(upper_of(rows));
  const double most = std::max(*std::max_element(uppers.begin(), uppers.end()), 0.0);
  if (uppers.size() < 2) return most;
  const auto count = static_cast<double>(uppers.size());
  const double mean = std::accumulate(uppers.begin(), uppers.end(), 0.0) / count;
  double squares = 0, sizes = 0;
  for (const double upper : uppers) {
    squares += (upper - mean) * (upper - mean);
    sizes += upper * upper / count;
  }
  // Degrees of freedom: of the groups count - 1, and one of what was held before them.
  const double spread = std::sqrt((squares + sizes) / count * (1 + 1 / count));
  const double student = boost::math::quantile(boost::math::students_t(count), kGroups);
  return std::max(most, mean + student * spread);
}

}  // namespace tierpilot::sharing

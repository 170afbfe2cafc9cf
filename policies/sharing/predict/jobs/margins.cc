#include "policies/sharing/predict/jobs/margins.h"

#include <algorithm>
#include <cmath>

namespace tierpilot::sharing {
namespace {

constexpr double kNever = 1e-12;
constexpr double kRounding = 1e-9;

using Sorted = std::vector<std::vector<double>>;

// That a draw of some of these, none twice, has one above `most`.
double one_above(const std::vector<double>& sorted, double most, size_t draws) {
  const auto below = std::upper_bound(sorted.begin(), sorted.end(), most) - sorted.begin();
  double none = 1;
  for (size_t i = 0; i < std::min(draws, sorted.size()); ++i)
    none *= std::max(0.0, static_cast<double>(below) - static_cast<double>(i)) /
            static_cast<double>(sorted.size() - i);
  return 1 - none;
}

// That at most `allowed` of the groups have one above `most` in their draws.
double few_above(const Sorted& groups, double most, size_t draws, size_t allowed) {
  std::vector<double> above(allowed + 1, 0.0);  // that so many have
  above[0] = 1;
  for (const auto& group : groups) {
    const double one = one_above(group, most, draws);
    for (size_t i = allowed; i > 0; --i) above[i] = above[i] * (1 - one) + above[i - 1] * one;
    above[0] *= 1 - one;
  }
  double sum = 0;
  for (const double each : above) sum += each;
  return sum;
}

Sorted sorted_groups(const Exceeds& exceeds) {
  Sorted groups;
  for (const auto& [name, rows] : exceeds)
    if (exceeds.size() > 1)
      groups.push_back(rows);
    else
      for (const double row : rows) groups.push_back({row});
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  for (auto& group : groups) std::sort(group.begin(), group.end());
  return groups;
}

}  // namespace

std::vector<size_t> folds_of(const std::vector<std::string>& groups) {
  std::map<std::string, size_t> fold;
  for (const auto& group : groups) fold.emplace(group, 0);
  size_t next = 0;
  for (auto& [group, at] : fold) at = next++ % kMostMarginFolds;
  std::vector<size_t> found;
  for (size_t i = 0; i < groups.size(); ++i)
    found.push_back(fold.size() > 1 ? fold[groups[i]] : i % 2);
  return found;
}

double upper_margin(const Exceeds& exceeds, double quantile) {
  const auto groups = sorted_groups(exceeds);
  // Of the groups and a new one, so many lie beyond.
  const double beyond = (1 - quantile) * static_cast<double>(groups.size() + 1) + kRounding;
  const size_t allowed = beyond >= 1 ? static_cast<size_t>(beyond) - 1 : 0;
  const size_t draws = beyond >= 1 ? 1 : static_cast<size_t>(std::ceil(1 / beyond));
  std::vector<double> values;
  for (const auto& group : groups) values.insert(values.end(), group.begin(), group.end());
  std::sort(values.begin(), values.end(), std::greater<>());
  double mean = 0, within = 1;
  for (size_t i = 0; i < values.size() && within > kNever; ++i) {
    const bool last = i + 1 == values.size();
    const double lower = last ? 0 : few_above(groups, values[i + 1], draws, allowed);
    mean += values[i] * (within - lower);
    within = lower;
  }
  return std::max(mean, 0.0);
}

}  // namespace tierpilot::sharing

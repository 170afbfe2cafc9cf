#include "policies/sharing/predict/jobs/margins.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tierpilot::sharing {

std::vector<size_t> folds_of(const std::vector<std::string>& groups) {
  std::map<std::string, size_t> fold;
  for (const auto& group : groups) fold.emplace(group, 0);
  size_t next = 0;
  for (auto& [group, at] : fold) at = next++ % kMarginFolds;
  std::vector<size_t> found;
  for (size_t i = 0; i < groups.size(); ++i)
    found.push_back(fold.size() > 1 ? fold[groups[i]] : i % 2);
  return found;
}

double upper_margin(std::vector<double> exceeds, double quantile) {
  if (exceeds.empty()) return 0;
  std::sort(exceeds.begin(), exceeds.end());
  const auto rank = std::ceil(quantile * static_cast<double>(exceeds.size() + 1));
  return std::max(exceeds[std::min(static_cast<size_t>(rank), exceeds.size()) - 1], 0.0);
}

}  // namespace tierpilot::sharing

#include "policies/sharing/predict/study.h"

#include <map>

namespace tierpilot::sharing {

Split leave_each_out(std::string name, const std::vector<std::string>& groups) {
  std::map<std::string, std::vector<size_t>> members;
  for (size_t i = 0; i < groups.size(); ++i) members[groups[i]].push_back(i);
  Split split{std::move(name), {}};
  for (const auto& [group, rows] : members) {
    Fold fold{group, {}, rows};
    for (size_t i = 0; i < groups.size(); ++i)
      if (groups[i] != group) fold.train.push_back(i);
    if (!fold.train.empty()) split.folds.push_back(std::move(fold));
  }
  return split;
}

}  // namespace tierpilot::sharing

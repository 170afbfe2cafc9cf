#include "policies/sharing/predict/study.h"

#include <algorithm>
#include <map>

namespace tierpilot::sharing {

Split leave_each_out(std::string name, const std::vector<std::string>& groups) {
  std::map<std::string, std::vector<size_t>> members;
  for (size_t i = 0; i < groups.size(); ++i) members[groups[i]].push_back(i);
  Split split{std::move(name), std::vector<Fold>(std::min(members.size(), kMostGroupFolds))};
  std::map<std::string, size_t> fold_of;
  for (const auto& [group, rows] : members) {
    const size_t at = fold_of.size() % split.folds.size();
    fold_of[group] = at;
    auto& fold = split.folds[at];
    fold.held_out += (fold.held_out.empty() ? "" : ", ") + group;
    fold.test.insert(fold.test.end(), rows.begin(), rows.end());
  }
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t at = 0; at < split.folds.size(); ++at)
      if (fold_of[groups[i]] != at) split.folds[at].train.push_back(i);
  std::erase_if(split.folds, [](const Fold& fold) { return fold.train.empty(); });
  return split;
}

}  // namespace tierpilot::sharing

// Attempts that nodes still have and that nobody counts on any more: their nodes were told to end
// them, and their tasks are not begun anew before they have. Event loop thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "coordinator/model.h"

namespace tierpilot {

class EndingAttempts {
 public:
  // `task`: that is begun with it; of a rank its gang.
  void add(uint64_t task, const std::string& node, AttemptId attempt) {
    by_task_[task].emplace(node, attempt);
  }
  // The node has said so. True if it was one of them.
  bool over(const std::string& node, AttemptId attempt) {
    return erase_if([&](const auto& one) { return one == std::pair(node, attempt); }) > 0;
  }
  bool empty() const { return by_task_.empty(); }
  // Nothing of them runs on the node any more, or it has just said what does.
  void forget_node(const std::string& node) {
    erase_if([&](const auto& one) { return one.first == node; });
  }
  // The node that one of the task's is on; null: there is none.
  const std::string* node_of(uint64_t task) const {
    const auto known = by_task_.find(task);
    return known == by_task_.end() ? nullptr : &known->second.begin()->first;
  }

 private:
  template <class Predicate>
  size_t erase_if(Predicate is_over) {
    size_t erased = 0;
    for (auto& [task, attempts] : by_task_) erased += std::erase_if(attempts, is_over);
    std::erase_if(by_task_, [](const auto& task) { return task.second.empty(); });
    return erased;
  }

  std::map<uint64_t, std::set<std::pair<std::string, AttemptId>>> by_task_;
};

}  // namespace tierpilot

#include "coordinator/core/outcomes/unwritten_ends.h"

namespace tierpilot {

void UnwrittenEnds::add(const Task& task) {
  auto& last = by_task_[task.id];
  const Held held{task.node, {task.id, task.attempt}};
  if (last.held.empty() || last.held.back() != held) last.held.push_back(held);
  last.attempt = task.attempt;
  last.state = task.state;
}

std::optional<std::vector<UnwrittenEnds::Held>> UnwrittenEnds::written(const Task& task) {
  const auto found = by_task_.find(task.id);
  if (found == by_task_.end()) return std::nullopt;
  const auto& last = found->second;
  // What was written before that says nothing of it.
  if (task.attempt < last.attempt || (task.attempt == last.attempt && task.state != last.state))
    return std::nullopt;
  return std::move(by_task_.extract(found).mapped().held);
}

std::vector<uint64_t> UnwrittenEnds::tasks() const {
  std::vector<uint64_t> tasks;
  for (const auto& [id, last] : by_task_) tasks.push_back(id);
  return tasks;
}

}  // namespace tierpilot

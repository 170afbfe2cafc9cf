#include "coordinator/core/queue/task_book.h"

#include <algorithm>

namespace tierpilot {
namespace {

QueuePlace place_of(const Task& task) {
  return {task.place_s, task.id};
}

size_t index_of(TaskState state) {
  return static_cast<size_t>(state);
}

}  // namespace

void TaskBook::add(std::vector<Task> tasks, const std::vector<std::vector<uint64_t>>& depends_on) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    const uint64_t id = tasks[i].id;
    if (tasks[i].rank) ranks_[tasks[i].rank->gang].push_back(id);  // ids rise with ranks
    for (const uint64_t parent : depends_on[i]) {
      children_[parent].push_back(id);
      missing_[id].insert(parent);
    }
    tasks[i].parents = depends_on[i];
    if (tasks[i].state == TaskState::kQueued) put_in_queue(tasks[i]);
    if (const Task* before = find(id)) count(*before, -1);
    count(tasks[i], 1);
    tasks_.insert_or_assign(id, std::move(tasks[i]));
  }
}

Task* TaskBook::find(uint64_t id) {
  const auto found = tasks_.find(id);
  return found == tasks_.end() ? nullptr : &found->second;
}

const Task* TaskBook::find(uint64_t id) const {
  const auto found = tasks_.find(id);
  return found == tasks_.end() ? nullptr : &found->second;
}

void TaskBook::remove(uint64_t id) {
  if (const Task* task = find(id)) {
    take_from_queue(*task);
    count(*task, -1);
  }
  children_.erase(id);
  missing_.erase(id);
  ranks_.erase(id);
  tasks_.erase(id);
}

std::span<const uint64_t> TaskBook::ranks_tried(const Task& gang) const {
  const std::span<const uint64_t> all = ranks_of(gang.id);
  if (gang.attempt == 0) return all.first(std::min<size_t>(all.size(), gang.spec.gang.ranks));
  const auto end = std::find_if(all.begin(), all.end(),
                                [&](uint64_t id) { return find(id)->attempt != gang.attempt; });
  return all.first(static_cast<size_t>(end - all.begin()));
}

const std::vector<uint64_t>& TaskBook::ranks_of(uint64_t gang) const {
  static const std::vector<uint64_t> kNone;
  const auto found = ranks_.find(gang);
  return found == ranks_.end() ? kNone : found->second;
}

void TaskBook::enqueue(Task& task) {
  set_state(task, TaskState::kQueued);
  put_in_queue(task);
}

void TaskBook::set_state(Task& task, TaskState state) {
  count(task, -1);
  task.state = state;
  count(task, 1);
}

size_t TaskBook::in_state(TaskState state) const {
  return in_state_[index_of(state)];
}

// Gangs are told by their ranks.
void TaskBook::count(const Task& task, int by) {
  if (!task.spec.is_gang()) in_state_[index_of(task.state)] += static_cast<size_t>(by);
}

void TaskBook::put_in_queue(const Task& task) {
  queue_of(task).insert(place_of(task));
  if (task.spec.is_gang()) queued_gangs_.insert(task.id);
}

void TaskBook::take_from_queue(const Task& task) {
  queue_of(task).erase(place_of(task));
  queued_gangs_.erase(task.id);
}

void TaskBook::advance(Task& task, TaskState state) {
  take_from_queue(task);
  set_state(task, state);
}

void TaskBook::start(Task& task) {
  set_state(task, TaskState::kRunning);
}

void TaskBook::place_anew(const std::function<double(const Task&)>& place_s) {
  queue_.clear();
  shared_queue_.clear();
  for (auto& [id, task] : tasks_) {
    task.place_s = place_s(task);
    if (task.state == TaskState::kQueued) queue_of(task).insert(place_of(task));
  }
}

std::vector<uint64_t> TaskBook::release_children(uint64_t id, int64_t now_ms) {
  std::vector<uint64_t> ready;
  const auto found = children_.find(id);
  if (found == children_.end()) return ready;
  for (const uint64_t child : found->second) {
    auto* task = find(child);
    auto missing = missing_.find(child);
    if (!task || missing == missing_.end()) continue;
    missing->second.erase(id);
    if (!missing->second.empty() || task->state != TaskState::kWaiting) continue;
    missing_.erase(missing);
    task->ready_ms = now_ms;
    enqueue(*task);
    ready.push_back(child);
  }
  return ready;
}

std::vector<uint64_t> TaskBook::descendants(uint64_t id) const {
  std::set<uint64_t> seen;
  std::vector<uint64_t> open{id};
  while (!open.empty()) {
    const auto found = children_.find(open.back());
    open.pop_back();
    if (found == children_.end()) continue;
    for (const uint64_t child : found->second)
      if (const auto* task = find(child); task && !is_ended(task->state))
        if (seen.insert(child).second) open.push_back(child);
  }
  return {seen.begin(), seen.end()};
}

}  // namespace tierpilot

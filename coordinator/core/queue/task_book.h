// The tasks that have not ended, their dependencies, and the queue. Event loop thread only.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "coordinator/model.h"
#include "policies/scheduling/service_order.h"

namespace tierpilot {

class TaskBook {
 public:
  // Tasks of one submit, with the ids of those that each depends on (parallel to `tasks`), as far
  // as they have not succeeded yet. A task without any is queued, the others wait.
  void add(std::vector<Task> tasks, const std::vector<std::vector<uint64_t>>& depends_on);

  Task* find(uint64_t id);
  const Task* find(uint64_t id) const;
  const std::map<uint64_t, Task>& all() const { return tasks_; }
  void remove(uint64_t id);

  // Queued tasks in the order of their places; one that comes back stands where it stood.
  const std::set<QueuePlace>& queue() const { return queue_; }
  // Of those that want shares of units, which do not stand in the queue.
  const std::set<QueuePlace>& shared_queue() const { return shared_queue_; }
  // The gangs in it, by id.
  const std::set<uint64_t>& queued_gangs() const { return queued_gangs_; }
  void enqueue(Task& task);
  // Takes a task out of the queue into the given state.
  void advance(Task& task, TaskState state);
  // It was assigned, and runs.
  void start(Task& task);
  void place_anew(const std::function<double(const Task&)>& place_s);

  // `id` has succeeded: the tasks that now have nothing left to wait for, already queued.
  std::vector<uint64_t> release_children(uint64_t id, int64_t now_ms);
  // All that depend on `id`, directly or not, and have not ended, by rising id.
  std::vector<uint64_t> descendants(uint64_t id) const;

  // By gang.
  const std::map<uint64_t, std::vector<uint64_t>>& ranks() const { return ranks_; }
  // Of a gang, by rank.
  const std::vector<uint64_t>& ranks_of(uint64_t gang) const;
  // Of a gang those of its last try, the first ones; before it was tried, as many as it begins
  // with.
  std::span<const uint64_t> ranks_tried(const Task& gang) const;

  // Gangs are told by their ranks.
  size_t in_state(TaskState state) const;

 private:
  void set_state(Task& task, TaskState state);
  void count(const Task& task, int by);
  std::set<QueuePlace>& queue_of(const Task& task) {
    return task.spec.is_shared() ? shared_queue_ : queue_;
  }
  void put_in_queue(const Task& task);
  void take_from_queue(const Task& task);

  std::map<uint64_t, Task> tasks_;
  std::set<QueuePlace> queue_;
  std::set<uint64_t> queued_gangs_;
  std::set<QueuePlace> shared_queue_;
  std::map<uint64_t, std::vector<uint64_t>> children_;
  std::map<uint64_t, std::set<uint64_t>> missing_;  // what a waiting task still waits for
  std::map<uint64_t, std::vector<uint64_t>> ranks_;
  // Counted as they change: there may be millions of tasks.
  std::array<size_t, static_cast<size_t>(TaskState::kCancelled) + 1> in_state_{};
};

}  // namespace tierpilot

#include "coordinator/core/outcomes/task_end.h"

#include <fmt/format.h>

#include <algorithm>

#include "policies/scheduling/attempts.h"

namespace tierpilot {

namespace {

bool is_the_nodes_fault(const Task& task, const TaskExit& exit) {
  if (!exit.node_fault) return false;
  if (exit.how == TaskEnd::kCouldNotStart) return true;
  return (exit.how == TaskEnd::kLost || exit.how == TaskEnd::kDataFailed) && may_forgive(task);
}

Verdict judge_try(const Task& task, const std::string& why, uint32_t max_attempts) {
  if (may_try_again(counted_tries(task), max_attempts)) return {Fate::kAgain, why};
  return {Fate::kFailed, fmt::format("{} (try {} of {}, on node '{}')", why, counted_tries(task),
                                     max_attempts, task.node)};
}

}  // namespace

Verdict judge(const Task& task, const TaskExit& exit, uint32_t max_attempts, bool stale_data) {
  if (exit.how == TaskEnd::kExited && exit.code == 0) return {Fate::kSucceeded, {}};
  if (exit.how == TaskEnd::kCancelled) {
    const auto reason = exit.reason.empty() ? "cancelled" : exit.reason;
    // Nobody asked for it: the node ended the task for reasons of its own, such as a restart.
    return {task.cancel_asked ? Fate::kCancelled : Fate::kAgain, reason, false};
  }
  if (is_the_nodes_fault(task, exit)) return {Fate::kAgain, exit.reason, false};
  if (exit.how == TaskEnd::kLeaseExpired) return judge_lost(task, exit.reason, max_attempts);
  // lost: its supervisor was killed, or the node's warden; nothing of it is left there.
  if (exit.how == TaskEnd::kLost) return judge_try(task, exit.reason, max_attempts);
  if (exit.how == TaskEnd::kDataFailed) {
    if (stale_data) return {Fate::kAgain, exit.reason, false};
    return judge_try(task, exit.reason, max_attempts);
  }
  if (!exit.reason.empty()) return {Fate::kFailed, exit.reason};
  if (exit.how == TaskEnd::kExited)
    return {Fate::kFailed, fmt::format("exit status {}", exit.code)};
  if (exit.how == TaskEnd::kSignalled)
    return {Fate::kFailed, fmt::format("ended by signal {}", exit.code)};
  return {Fate::kFailed, std::string(task_end_name(exit.how))};
}

uint32_t counted_tries(const Task& task) {
  return task.attempt - std::min(task.attempt, task.forgiven);
}

// A task may kill the warden that it runs under, which looks like a fault of the node, and data
// that no node can serve any more would be tried for ever.
bool may_forgive(const Task& task) {
  const uint32_t preempted = task.share ? task.share->preemptions : 0;
  return task.forgiven < kMostForgiven + preempted;
}

Verdict judge_lost(const Task& task, const std::string& why, uint32_t max_attempts) {
  if (!task.rank && may_forgive(task)) return {Fate::kAgain, why, false, true};
  auto verdict = judge_try(task, why, max_attempts);
  verdict.node_lost = true;
  return verdict;
}

int64_t ended_ms(const Clock& clock, const Task& task, const TaskExit& exit) {
  const int64_t now_ms = clock.wall_ms(), earliest_ms = std::min(task.submitted_ms, now_ms);
  const auto most_ms = static_cast<uint64_t>(now_ms - earliest_ms);
  return now_ms - static_cast<int64_t>(std::min(exit.ago_ms, most_ms));
}

int64_t started_by_exit_ms(const Clock& clock, const Task& task, const TaskExit& exit) {
  return std::max(ended_ms(clock, task, exit) - static_cast<int64_t>(exit.wall_ns / 1'000'000),
                  task.submitted_ms);
}

}  // namespace tierpilot

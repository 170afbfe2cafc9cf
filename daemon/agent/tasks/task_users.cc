#include "daemon/agent/tasks/task_users.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"

namespace tierpilot::agent {

using Kind = TaskUsersConfig::Kind;

TaskUsers::TaskUsers(const TaskUsersConfig& config, Accounts::Post post)
    : config_(config), next_(config.first) {
  if (config.kind == Kind::kSubmitter) accounts_.emplace(config.lowest, std::move(post));
}

void TaskUsers::find(const std::string& submitter, Accounts::Found found) {
  accounts_->find(submitter, std::move(found));
}

Result<std::optional<TaskUser>> TaskUsers::take(AttemptId attempt) {
  if (config_.kind != Kind::kPool) return std::nullopt;
  const uint64_t count = uint64_t{config_.last} - config_.first + 1;
  for (uint64_t tried = 0; tried < count; ++tried) {
    const uid_t uid = next_;
    next_ = next_ == config_.last ? config_.first : next_ + 1;
    if (!taken_.insert(uid).second) continue;
    holders_[attempt] = uid;
    return TaskUser{.uid = uid, .gid = uid, .reserved = true};
  }
  return fail(ErrorCode::kExhausted,
              fmt::format("no user of tasks.run_as is free: {} run, and of {} something is left",
                          holders_.size(), taken_.size() - holders_.size()));
}

void TaskUsers::give_back(AttemptId attempt) {
  if (const auto holder = holders_.extract(attempt)) taken_.erase(holder.mapped());
}

void TaskUsers::cleared(AttemptId attempt, const std::string& left) {
  if (left.empty()) return give_back(attempt);
  spdlog::error("task {} attempt {}: something of it is left: {}", attempt.task, attempt.attempt,
                left);
  holders_.erase(attempt);
}

std::string TaskUsers::description() const {
  switch (config_.kind) {
    case Kind::kPool:
      return fmt::format("each task as a user of its own, {} to {}", config_.first, config_.last);
    case Kind::kSubmitter:
      return "tasks as who submitted them";
    case Kind::kDaemon:
      break;
  }
  return fmt::format(
      "tasks run as the daemon's own user, {}: they can harm each other and read "
      "what it can, see tasks.run_as",
      ::geteuid());
}

}  // namespace tierpilot::agent

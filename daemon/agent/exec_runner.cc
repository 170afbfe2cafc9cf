#include "daemon/agent/exec_runner.h"

#include "base/log.h"
#include "daemon/agent/task_env.h"

namespace tierpilot::agent {

Status ExecRunner::launch(const LaunchOrder& order) {
  const auto& assignment = order.assignment;
  auto dir = dirs_.create(assignment.attempt);
  if (!dir) return tl::unexpected(dir.error());
  TaskLaunch task;
  task.task_id = assignment.attempt.task;
  task.attempt = assignment.attempt.attempt;
  task.argv = assignment.argv;
  task.env = task_environment(assignment, order.datasets, order.cpus, options_.node, *dir);
  task.working_directory = task.log_directory = dir->native();
  task.cpus = order.cpus;
  if (assignment.memory_limit_bytes > 0) task.memory_limit_bytes = assignment.memory_limit_bytes;
  task.time_limit_ms = assignment.time_limit_ms;
  return executor_.launch(task);
}

void ExecRunner::cancel(AttemptId attempt, const std::string& reason) {
  cancel_reasons_.emplace(attempt, reason);
  if (auto status = executor_.cancel(attempt.task, attempt.attempt, options_.cancel_grace_ms);
      !status && status.error().code != ErrorCode::kNotFound)
    spdlog::warn("task {} attempt {} cannot be cancelled: {}", attempt.task, attempt.attempt,
                 status.error().message);
}

void ExecRunner::deliver(TaskTable& tasks) {
  for (auto& event : executor_.poll()) {
    if (const auto* started = std::get_if<TaskStarted>(&event)) {
      const AttemptId attempt{started->task_id, started->attempt};
      if (probe_) {
        probe_->track_group(started->pid);
        groups_[attempt] = started->pid;
      }
      tasks.started(attempt, started->pid);
    } else {
      auto& exit = std::get<ProcessExit>(event);
      const AttemptId attempt{exit.task_id, exit.attempt};
      dirs_.mark_ended(attempt);
      tasks.exited(attempt, report(std::move(exit)));
    }
  }
}

ExitReport ExecRunner::report(ProcessExit exit) {
  const AttemptId attempt{exit.task_id, exit.attempt};
  if (const auto group = groups_.extract(attempt)) {
    const auto io = probe_->group_io(group.mapped()).block_io;
    if (io && !exit.read_bytes) exit.read_bytes = io->read.bytes;
    if (io && !exit.written_bytes) exit.written_bytes = io->write.bytes;
    probe_->untrack_group(group.mapped());
  }
  ExitReport report;
  report.how = task_end_name(exit.how);
  report.reason = exit.reason;
  if (const auto reason = cancel_reasons_.extract(attempt);
      reason && exit.how == TaskEnd::kCancelled)
    report.reason = reason.mapped();
  report.process = std::move(exit);
  return report;
}

}  // namespace tierpilot::agent

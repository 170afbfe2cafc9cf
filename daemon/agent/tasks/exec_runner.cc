#include "daemon/agent/tasks/exec_runner.h"

#include <algorithm>
#include <exception>

#include "base/log.h"
#include "daemon/agent/paging/task_memory.h"
#include "daemon/agent/tasks/task_env.h"
#include "daemon/exec/exit_records.h"
#include "daemon/exec/users/belongings.h"

namespace tierpilot::agent {
namespace fs = std::filesystem;

namespace {

// The later ones win.
void merge(Environment& env, Environment more) {
  for (auto& variable : more) {
    std::erase_if(env, [&](const auto& known) { return known.first == variable.first; });
    env.push_back(std::move(variable));
  }
}

PlacedTask placed_task(const Assignment& assignment) {
  PlacedTask task{
      .attempt = assignment.attempt, .name = assignment.name, .wish = assignment.memory_wish};
  for (const auto& need : assignment.datasets) task.datasets.push_back(need.name);
  return task;
}

// Whatever it meets, the others are not kept from theirs.
template <class Step>
void go_on_after(AttemptId attempt, const Step& step) {
  try {
    step();
  } catch (const std::exception& error) {
    spdlog::error("task {} attempt {}: {}", attempt.task, attempt.attempt, error.what());
  }
}

AttemptId attempt_of(const TaskEvent& event) {
  return std::visit([](const auto& one) { return AttemptId{one.task_id, one.attempt}; }, event);
}

}  // namespace

Status ExecRunner::launch(const LaunchOrder& order) {
  const auto attempt = order.assignment.attempt;
  if (!users_.looks_up()) {
    const auto user = users_.take(attempt);
    return user ? launch_as(order, *user) : tl::unexpected(user.error());
  }
  waiting_[attempt] = {order.assignment, order.datasets, order.cpus, order.gpu};
  users_.find(order.assignment.submitter,
              [weak = std::weak_ptr(self_), attempt](const Result<TaskUser>& user) {
                if (const auto self = weak.lock()) (*self)->user_found(attempt, user);
              });
  return {};
}

void ExecRunner::user_found(AttemptId attempt, const Result<TaskUser>& user) {
  const auto waiting = waiting_.extract(attempt);
  if (!waiting) return;
  const auto fail_with = [&](TaskEnd how, const Error& error) {
    ExitReport report;
    report.how = how;
    report.reason = error.message;
    // A submitter without an account is no fault of the node: others must not wait for it.
    report.node_fault = how == TaskEnd::kCouldNotStart && error.code != ErrorCode::kInvalid;
    failed(attempt, std::move(report));
  };
  if (const auto reason = cancel_reasons_.extract(attempt))
    return fail_with(TaskEnd::kCancelled, {ErrorCode::kConflict, reason.mapped()});
  if (!user) return fail_with(TaskEnd::kCouldNotStart, user.error());
  if (const auto launched = launch_as(waiting.mapped().order(), *user); !launched)
    fail_with(TaskEnd::kCouldNotStart, launched.error());
}

Status ExecRunner::launch_as(const LaunchOrder& order, const std::optional<TaskUser>& user) {
  const auto attempt = order.assignment.attempt;
  const auto dir = user ? dirs_.create_for_other(attempt) : dirs_.create(attempt);
  auto launched = dir ? start_in(*dir, order, user) : tl::unexpected(dir.error());
  if (launched) return launched;
  users_.give_back(attempt);
  dirs_.mark_ended(attempt);
  channels_.close(attempt);
  swap_room_.give_back(attempt);
  swap_room_.remove_folders(attempt);
  return launched;
}

Status ExecRunner::give_swap_room(const Assignment& assignment, TaskLaunch& task) {
  if (assignment.swap_room_bytes == 0) return {};
  const auto grant = swap_room_.take(assignment.attempt, assignment.swap_room_bytes);
  if (!grant) return tl::unexpected(grant.error());
  merge(task.env, swap_environment(assignment, *grant));
  task.swap_memory_bytes = grant->memory_bytes();
  task.given_folders = grant->folders();
  return {};
}

Status ExecRunner::start_in(const fs::path& dir, const LaunchOrder& order,
                            const std::optional<TaskUser>& user) {
  const auto& assignment = order.assignment;
  const auto work = user ? dir / kWorkFolder : dir;
  TaskLaunch task;
  task.task_id = assignment.attempt.task;
  task.attempt = assignment.attempt.attempt;
  task.argv = assignment.argv;
  task.env = task_environment(assignment, order.datasets, order.cpus, options_.node, work);
  const auto uid = user ? std::optional(user->uid) : std::nullopt;
  if (const auto channel = channels_.open(assignment.attempt, dir, uid))
    merge(task.env, {{"TIERPILOT_JOB_SOCKET", channel->native()}});
  else
    spdlog::warn("task {}: {}", assignment.attempt.task, channel.error().message);
  const auto& part = assignment.part;
  if (part && !order.gpu.empty()) merge(task.env, gpus_.environment(order.gpu, *part));
  task.working_directory = work.native();
  task.log_directory = dir.native();
  task.user = user;
  for (const auto& item : order.datasets)
    if (user && item.write) task.given.push_back(item.path);
  task.cpus = order.cpus;
  if (assignment.memory_limit_bytes > 0) task.memory_limit_bytes = assignment.memory_limit_bytes;
  task.time_limit_ms = assignment.time_limit_ms;
  // What it wrote becomes a version only when the daemon has committed it.
  task.keep_success = std::none_of(assignment.datasets.begin(), assignment.datasets.end(),
                                   [](const ServeItem& need) { return need.write; });
  auto memory = plan_task_memory(assignment.memory_wish, placement_.tiers(),
                                 find_heap_library(Sysroot("/")), task.env);
  task.memory_nodes = memory.nodes;
  task.interleave_memory = memory.interleave;
  merge(task.env, std::move(memory.env));
  if (auto given = give_swap_room(assignment, task); !given) return given;
  auto launched = executor_.launch(task);
  if (!launched) return launched;
  checkpoints_.begin(assignment);
  if (part && !order.gpu.empty()) gpus_.launched(assignment.attempt, order.gpu, *part);
  launched_[assignment.attempt] = {placed_task(assignment), std::move(memory.outcome)};
  return launched;
}

Status ExecRunner::pause(AttemptId attempt, bool paused) {
  return paused ? executor_.freeze(attempt.task, attempt.attempt)
                : executor_.thaw(attempt.task, attempt.attempt);
}

void ExecRunner::confine(AttemptId attempt, const CpuShare& share) {
  shares_.set(attempt, share);
  channels_.set_cores(attempt, share.cores);
}

void ExecRunner::confine_gpu(AttemptId attempt, uint32_t milli) {
  gpus_.set(attempt, milli);
  channels_.set_share(attempt, milli);
}

void ExecRunner::cancel(AttemptId attempt, const std::string& reason) {
  cancel_reasons_.emplace(attempt, reason);
  shares_.let_go(attempt);
  gpus_.let_go(attempt);
  channels_.stop(attempt, reason);
  if (auto status = executor_.cancel(attempt.task, attempt.attempt, options_.cancel_grace_ms);
      !status && status.error().code != ErrorCode::kNotFound)
    spdlog::warn("task {} attempt {} cannot be cancelled: {}", attempt.task, attempt.attempt,
                 status.error().message);
}

void ExecRunner::acknowledged(AttemptId attempt) {
  drop_exit(options_.task_root, attempt.task, attempt.attempt);
}

std::vector<std::pair<AttemptId, ExitReport>> ExecRunner::kept_exits() {
  std::vector<std::pair<AttemptId, ExitReport>> kept;
  for (auto& exit : tierpilot::kept_exits(options_.task_root)) {
    const AttemptId attempt{exit.task_id, exit.attempt};
    kept.emplace_back(attempt, report(std::move(exit)));
  }
  return kept;
}

void ExecRunner::deliver(TaskTable& tasks) {
  for (auto& event : executor_.poll()) go_on_after(attempt_of(event), [&] { take(event, tasks); });
}

void ExecRunner::take(TaskEvent& event, TaskTable& tasks) {
  const auto attempt = attempt_of(event);
  if (const auto* start = std::get_if<TaskStarted>(&event)) {
    started(*start, tasks);
  } else if (const auto* cleared = std::get_if<TaskCleared>(&event)) {
    users_.cleared(attempt, cleared->left);
    swap_room_.remove_folders(attempt);
  } else {
    auto& exit = std::get<ProcessExit>(event);
    const bool well = exit.how == TaskEnd::kExited && exit.exit_code == 0;
    if (well || !gpus_.has(attempt))
      ended(std::move(exit), tasks);
    else
      gpus_.settle(attempt, [weak = std::weak_ptr(self_), &tasks, exit = std::move(exit)] {
        const auto self = weak.lock();
        if (!self) return;
        go_on_after(attempt_of(exit), [&] { (*self)->ended(exit, tasks); });
      });
  }
}

void ExecRunner::ended(ProcessExit exit, TaskTable& tasks) {
  const AttemptId attempt{exit.task_id, exit.attempt};
  go_on_after(attempt, [&] { dirs_.mark_ended(attempt); });
  go_on_after(attempt, [&] { channels_.close(attempt); });
  go_on_after(attempt, [&] { checkpoints_.end(attempt); });
  go_on_after(attempt, [&] { shares_.end(attempt); });
  go_on_after(attempt, [&] { swap_room_.give_back(attempt); });
  const bool well = exit.how == TaskEnd::kExited && exit.exit_code == 0;
  auto said = report(std::move(exit));
  if (const auto bytes = gpus_.peak_bytes(attempt); bytes > 0)
    said.memory.push_back({"gpu_peak_bytes", static_cast<double>(bytes)});
  std::optional<GpuEnd> end;
  go_on_after(attempt, [&] { end = gpus_.ended(attempt); });
  if (end && !well && end->explains(said.how, said.reason)) {
    said.how = end->how;
    said.reason = std::move(end->reason);
    said.node_fault = end->node_fault;
  }
  tasks.exited(attempt, std::move(said));
  // Those of another user come back when its tasks are cleared away.
  if (!users_.others()) swap_room_.remove_folders(attempt);
}

void ExecRunner::started(const TaskStarted& event, TaskTable& tasks) {
  const AttemptId attempt{event.task_id, event.attempt};
  go_on_after(attempt, [&] {
    if (!probe_) return;
    probe_->track_group(event.pid, own_cgroup(attempt));
    groups_[attempt] = event.pid;
  });
  if (const auto launched = launched_.find(attempt); launched != launched_.end())
    go_on_after(attempt, [&] {
      launched->second.placed.pid = event.pid;
      placement_.task_started(launched->second.placed);
    });
  go_on_after(attempt, [&] { shares_.begin(attempt, event.pid); });
  go_on_after(attempt, [&] { gpus_.started(attempt, event.pid); });
  tasks.started(attempt, event.pid);
}

OwnCgroup ExecRunner::own_cgroup(AttemptId attempt) const {
  const auto cgroup = executor_.cgroup(attempt.task, attempt.attempt);
  if (!cgroup) return {};
  const uint64_t id = cgroup->id();
  return {.id = id, .charges_memory = id != 0 && executor_.limits().memory.on};
}

ExitReport ExecRunner::report(ProcessExit exit) {
  const AttemptId attempt{exit.task_id, exit.attempt};
  ExitReport report;
  if (const auto group = groups_.extract(attempt))
    go_on_after(attempt, [&] {
      const auto seen = probe_->group_io(group.mapped());
      const auto& io = seen.block_io;
      if (io && !exit.read_bytes) exit.read_bytes = io->read.bytes;
      if (io && !exit.written_bytes) exit.written_bytes = io->write.bytes;
      report.memory = task_memory_metrics(seen, probe_->subjects());
      probe_->untrack_group(group.mapped());
    });
  go_on_after(attempt, [&] { placement_.task_ended(attempt); });
  if (auto launched = launched_.extract(attempt))
    report.memory_tier = std::move(launched.mapped().memory_outcome);
  report.how = exit.how;
  report.reason = exit.reason;
  report.node_fault = exit.node_fault;
  if (const auto reason = cancel_reasons_.extract(attempt);
      reason && exit.how == TaskEnd::kCancelled)
    report.reason = reason.mapped();
  report.process = std::move(exit);
  return report;
}

}  // namespace tierpilot::agent

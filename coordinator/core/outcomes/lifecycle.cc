#include "coordinator/core/outcomes/lifecycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "base/text/utf8.h"
#include "coordinator/core/nodes/node_events.h"
#include "coordinator/core/outcomes/too_large.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

void call(const Lifecycle::Durable& durable, Status status) {
  if (durable) durable(std::move(status));
}

// Those that it never had are no success.
void end_ranks(TaskBook& tasks, const Task& gang, std::vector<uint64_t>& changed) {
  for (const uint64_t id : tasks.ranks_of(gang.id)) {
    auto& rank = *tasks.find(id);
    tasks.advance(rank, rank.attempt > 0 ? gang.state : TaskState::kCancelled);
    if (rank.attempt == 0) rank.reason = "its gang ended without it";
    rank.finished_ms = gang.finished_ms;
    changed.push_back(id);
  }
}

// What waited for it is told, each of maybe thousands.
std::string why_not_run(const Task& task, const Verdict& verdict) {
  constexpr size_t kMostName = 128, kMostReason = 512;
  const auto& name = task.spec.name;
  return fmt::format("task {}{} before it {}: {}", task.id,
                     name.empty() ? "" : " ('" + beginning(name, kMostName) + "')",
                     verdict.fate == Fate::kFailed ? "failed" : "was cancelled",
                     beginning(verdict.reason, kMostReason));
}

// A success that was reported only after the node had been given up, before another try began.
Task* late_success(ClusterState& state, const Publication& publication, const std::string& node,
                   AttemptId attempt, const TaskExit& exit) {
  auto* task = state.tasks.find(attempt.task);
  const bool waits = task && task->state == TaskState::kQueued &&
                     task->attempt == attempt.attempt && task->node == node;
  const bool succeeded = waits && exit.how == TaskEnd::kExited && exit.code == 0;
  return succeeded && publication.allowed(*task, node, exit) ? task : nullptr;
}

// Its processes have ended, and it ends once what it wrote is on enough nodes.
void begin_to_wait(ClusterState& state, Task& task) {
  state.catalog.lock_writes(task);
  state.tasks.advance(task, TaskState::kRunning);
  task.reason = "it has ended, and what it wrote is being copied to other nodes";
}

}  // namespace

Task* Lifecycle::current(const std::string& node, AttemptId attempt) {
  auto* task = state_.tasks.find(attempt.task);
  const bool held = task && task->attempt == attempt.attempt && task->node == node &&
                    (task->state == TaskState::kAssigned || task->state == TaskState::kRunning);
  return held ? task : nullptr;
}

void Lifecycle::started(const std::string& node, AttemptId attempt, int32_t pid,
                        const std::vector<uint32_t>& cpu_units) {
  auto* task = current(node, attempt);
  if (!task || task->state == TaskState::kRunning) return;
  state_.heed_clock();
  state_.tasks.start(*task);
  if (task->rank) {
    task->rank->pid = pid;
    task->rank->cpu_units = cpu_units;
  }
  task->started_ms = state_.clock.wall_ms();
  auto& record = *state_.registry.find(node);
  state_.registry.run(record, task->spec.own_units());
  if (record.health.started()) {
    state_.registry.look_anew();
    note(state_, node, "trusted again", "a task has started there");
  }
  state_.units_changed();
  writes_.note(task->id);
  if (task->spec.is_elastic() || task->spec.is_shared()) hooks_.job_started(*task);
  if (task->rank) hooks_.rank_started(*task);
  writes_.write_noted();
}

void Lifecycle::gang_started(Task& gang) {
  state_.tasks.start(gang);
  gang.started_ms = state_.clock.wall_ms();
  writes_.note(gang.id);
}

void Lifecycle::served(const std::string& node, AttemptId attempt, const ServedData& data) {
  auto* task = current(node, attempt);
  if (!task || task->served) return;
  task->served = data;
  if (auto* record = state_.registry.find(node)) {
    record->count_served(*task);
    const auto bytes = static_cast<double>(data.fetched_bytes);
    const double fetch_s = static_cast<double>(data.fetch_ns) / 1e9;
    record->fetches.add(bytes, fetch_s);
    state_.order.fetched(bytes, fetch_s);
  }
  hooks_.served(attempt, data);
}

void Lifecycle::exited(const std::string& node, AttemptId attempt, TaskExit exit, Durable durable) {
  auto* task = current(node, attempt);
  if (task && copies_ && copies_->waits(task->id))  // told again
    return writes_.write({task->id}, {}, std::move(durable));
  if (!task) task = late_success(state_, publication_, node, attempt, exit);
  if (!task) return superseded(node, attempt, exit, std::move(durable));
  state_.heed_clock();
  state_.ending.over(node, attempt);
  const bool stale = exit.how == TaskEnd::kDataFailed && publication_.used_is_stale(*task);
  auto verdict = judge(*task, exit, state_.max_attempts(*task), stale);
  if (auto why = too_large_for_all(state_.registry, *task, exit); !why.empty())
    verdict = {Fate::kFailed, std::move(why)};
  if (verdict.fate == Fate::kSucceeded && !publication_.allowed(*task, node, exit)) {
    verdict = {Fate::kAgain, "what it wrote is not the next version of its dataset any more"};
    publication_.superseded(node, exit.written);
  }
  // The report of its start may have been lost with an earlier coordinator, or repeated to this
  // one, and come as late as that of its end.
  if (exit.wall_ns > 0 || task->started_ms > 0) {
    const int64_t by_exit_ms = started_by_exit_ms(state_.clock, *task, exit);
    task->started_ms = task->started_ms == 0 ? by_exit_ms : std::min(task->started_ms, by_exit_ms);
  }
  task->exit = std::move(exit);
  if (auto* record = state_.registry.find(node)) {
    ++record->tasks_done;
    judge_node(state_, *record, *task, *task->exit);
    if (verdict.fate == Fate::kSucceeded) {
      const double operations = task->counted_operations / task->spec.units;
      const double ran_s = static_cast<double>(task->exit->wall_ns) / 1e9;
      state_.registry.ran(*record, operations, ran_s);
      if (operations > 0 && ran_s > 0) state_.order.ran(operations, ran_s);
    }
  }
  if (verdict.fate == Fate::kSucceeded && copies_ && WriteCopies::are_wanted(state_, *task->exit))
    return wait_for_copies(*task, std::move(durable));
  finish(*task, verdict, std::move(durable), ended_ms(state_.clock, *task, *task->exit));
}

void Lifecycle::wait_for_copies(Task& task, Durable durable) {
  detach(task, true);
  begin_to_wait(state_, task);
  writes_.write({task.id}, {}, std::move(durable));
  copies_->begin(task);
  hooks_.work_available();
}

void Lifecycle::copied(uint64_t id) {
  auto& task = *state_.tasks.find(id);
  if (copies_->are_there(id)) {
    conclude(task, {Fate::kSucceeded, {}}, nullptr);
    return copies_->end(id, true);
  }
  copies_->end(id, false);
  const auto why = fmt::format("what it wrote is not on node '{}' any more", task.node);
  conclude(task, judge_lost(task, why, state_.max_attempts(task)), nullptr);
}

void Lifecycle::resume_copies(WriteCopies& copies) {
  copies_ = &copies;
  for (const auto& [id, task] : state_.tasks.all())
    if (WriteCopies::were_wanted(state_, task)) copies.resume(task);
}

void Lifecycle::found(const std::string& node, const DatasetVersion& what) {
  auto* entry = state_.catalog.find(what.dataset);
  const bool is_nobodys = copies_ && entry && !entry->next && entry->writer == 0 &&
                          what.version == entry->dataset.version + 1;
  if (!is_nobodys) return;
  for (const uint64_t id : entry->users) {
    auto* task = state_.tasks.find(id);
    const bool had_written =
        task && task->state == TaskState::kQueued && !task->cancel_asked &&
        task->has_ended_well() &&
        std::any_of(task->exit->written.begin(), task->exit->written.end(), [&](const auto& one) {
          return one.dataset == what.dataset && one.version == what.version &&
                 one.digest == what.digest;
        });
    if (!had_written || !publication_.allowed(*task, node, *task->exit)) continue;
    spdlog::info("task {}: what it wrote is on node '{}' after all: it need not run again", id,
                 node);
    state_.held.forget(id);
    state_.heed_clock();
    if (task->spec.is_shared()) hooks_.share_ended(*task, false);  // a unit may be kept for it
    task->started_ms = started_by_exit_ms(state_.clock, *task, *task->exit);
    begin_to_wait(state_, *task);
    writes_.write({id}, {}, nullptr);
    return copies_->resume(*task);
  }
}

void Lifecycle::superseded(const std::string& node, AttemptId attempt, const TaskExit& exit,
                           Durable durable) {
  if (writes_.has_unwritten_end(attempt.task))
    return call(durable, fail(ErrorCode::kIo, "the end of the task is not on disk yet"));
  publication_.superseded(node, exit.written);
  writes_.release(node, attempt);
  call(durable, {});
  if (state_.ending.over(node, attempt)) hooks_.work_available();
}

void Lifecycle::detach(Task& task, bool succeeded) {
  auto* node = state_.registry.find(task.node);
  if (node &&
      state_.registry.release(*node, {task.id, task.attempt}, task.spec.own_units(),
                              task.state == TaskState::kRunning, task.spec.swap_room_bytes)) {
    node->uncount(task);
    state_.held.room(node->slot);
    state_.units_changed();
  }
  state_.catalog.unlock_writes(task);
  if (task.spec.is_shared()) hooks_.share_ended(task, succeeded);
  // A rank's place was decided with its gang's, a share's by who deals them out.
  if (!task.rank && !task.spec.is_gang() && !task.spec.is_shared())
    hooks_.attempt_ended({task.id, task.attempt}, succeeded);
}

void Lifecycle::park(Task& rank, const Verdict& verdict, Durable durable) {
  detach(rank, verdict.fate == Fate::kSucceeded);
  rank.reason = verdict.reason;
  state_.tasks.advance(rank, TaskState::kWaiting);
  writes_.write({rank.id}, {}, std::move(durable));
  hooks_.rank_over(rank, verdict);
  hooks_.work_available();
}

void Lifecycle::finish(Task& task, Verdict verdict, Durable durable,
                       std::optional<int64_t> ended_ms) {
  if (task.rank) return park(task, verdict, std::move(durable));
  detach(task, verdict.fate == Fate::kSucceeded);
  conclude(task, std::move(verdict), std::move(durable), ended_ms);
}

void Lifecycle::conclude(Task& task, Verdict verdict, Durable durable,
                         std::optional<int64_t> ended_ms) {
  state_.heed_clock();
  state_.catalog.unlock_writes(task);
  state_.held.forget(task.id);
  if (verdict.fate == Fate::kAgain && task.cancel_asked)
    verdict = {Fate::kCancelled, "cancelled while its node was lost"};
  std::vector<uint64_t> changed{task.id};
  std::vector<Dataset> datasets;
  task.reason = verdict.reason;
  if (verdict.fate == Fate::kAgain) {
    spdlog::warn("task {}: {}: it is queued again", task.id, verdict.reason);
    if (!verdict.counts) ++task.forgiven;
    task.started_ms = 0;
    task.served.reset();
    task.ready_ms = state_.clock.wall_ms();
    state_.tasks.enqueue(task);
  } else {
    task.finished_ms = ended_ms.value_or(state_.clock.wall_ms());
    if (verdict.fate == Fate::kSucceeded) {
      state_.tasks.advance(task, TaskState::kSucceeded);
      datasets = publication_.publish(task);
      end_ranks(state_.tasks, task, changed);
      for (const uint64_t child : state_.tasks.release_children(task.id, state_.clock.wall_ms()))
        changed.push_back(child);
    } else {
      const bool failed = verdict.fate == Fate::kFailed;
      state_.tasks.advance(task, failed ? TaskState::kFailed : TaskState::kCancelled);
      end_ranks(state_.tasks, task, changed);
      const auto why = why_not_run(task, verdict);
      for (const uint64_t id : state_.tasks.descendants(task.id)) {
        auto& child = *state_.tasks.find(id);
        state_.tasks.advance(child, TaskState::kFailed);
        child.finished_ms = task.finished_ms;
        child.reason = why;
        changed.push_back(id);
        end_ranks(state_.tasks, child, changed);
      }
    }
  }
  writes_.write(std::move(changed), std::move(datasets), std::move(durable));
  hooks_.work_available();
}

void Lifecycle::cancel(uint64_t id, Durable done) {
  auto* task = state_.tasks.find(id);
  if (!task) return call(done, {});
  if (is_ended(task->state)) return writes_.write_ends(std::move(done));
  if (task->rank) return cancel(task->rank->gang, std::move(done));
  if (task->state == TaskState::kWaiting || task->state == TaskState::kQueued)
    return finish(*task, {Fate::kCancelled, "cancelled"}, std::move(done));
  if (copies_ && copies_->waits(id)) {
    copies_->end(id, false);
    return conclude(*task, {Fate::kCancelled, "cancelled, and what it wrote is discarded"},
                    std::move(done));
  }
  task->cancel_asked = true;
  task->reason = "it was cancelled, and is being ended";
  if (auto* node = state_.registry.find(task->node); node && node->link)
    node->link->cancel({id, task->attempt}, "cancelled");
  writes_.write({id}, {}, std::move(done));
  if (task->spec.is_gang()) hooks_.stop_gang(*task, "cancelled");
}

void Lifecycle::paused(AttemptId attempt, bool paused, Durable done) {
  auto* task = state_.tasks.find(attempt.task);
  if (!task || task->attempt != attempt.attempt || task->state != TaskState::kRunning)
    return call(done, {});
  task->reason = paused ? "paused" : "";
  writes_.write({task->id}, {}, std::move(done));
}

}  // namespace tierpilot

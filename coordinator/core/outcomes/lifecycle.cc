#include "coordinator/core/outcomes/lifecycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "coordinator/core/nodes/node_events.h"
#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

void call(const Lifecycle::Durable& durable, Status status) {
  if (durable) durable(std::move(status));
}

// Its last attempt is over; a rank waits for what its gang makes of it.
bool is_over(const Task& task) {
  const bool waits =
      task.state == TaskState::kQueued || (task.rank && task.state == TaskState::kWaiting);
  return is_ended(task.state) || (waits && task.attempt > 0);
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
  task->state = TaskState::kRunning;
  if (task->rank) {
    task->rank->pid = pid;
    task->rank->cpu_units = cpu_units;
  }
  task->started_ms = state_.clock.wall_ms();
  auto& record = *state_.registry.find(node);
  state_.registry.run(record, task->spec.own_units());
  if (record.health.started()) {
    state_.registry.look_who_is_open();
    note(state_, node, "trusted again", "a task has started there");
  }
  state_.units_changed();
  starts_.insert(task->id);
  if (task->spec.is_elastic() || task->spec.is_shared()) hooks_.job_started(*task);
  if (task->rank) hooks_.rank_started(*task);
  if (!writing_starts_) write_starts();
}

void Lifecycle::gang_started(Task& gang) {
  gang.state = TaskState::kRunning;
  gang.started_ms = state_.clock.wall_ms();
  starts_.insert(gang.id);
}

void Lifecycle::write_starts() {
  writing_starts_ = !starts_.empty();
  if (writing_starts_)
    write({starts_.begin(), starts_.end()}, {}, [this](Status) { write_starts(); });
}

void Lifecycle::flush_starts() {
  if (!starts_.empty()) write({starts_.begin(), starts_.end()}, {}, [](Status) {});
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
    return write({task->id}, {}, std::move(durable));
  if (!task) task = late_success(node, attempt, exit);
  if (!task) return superseded(node, attempt, exit, std::move(durable));
  state_.ending.over(node, attempt);
  const bool stale = exit.how == TaskEnd::kDataFailed && publication_.used_is_stale(*task);
  auto verdict = judge(*task, exit, state_.max_attempts(*task), stale);
  if (verdict.fate == Fate::kSucceeded && !publication_.allowed(*task, node, exit)) {
    verdict = {Fate::kAgain, "what it wrote is not the next version of its dataset any more"};
    publication_.superseded(node, exit.written);
  }
  // The report of its start may have been lost with an earlier coordinator, or repeated to this
  // one.
  if (exit.wall_ns > 0) {
    const int64_t by_exit_ms = started_by_exit_ms(*task, exit);
    task->started_ms = task->started_ms == 0 ? by_exit_ms : std::min(task->started_ms, by_exit_ms);
  }
  task->exit = std::move(exit);
  if (auto* record = state_.registry.find(node)) {
    ++record->tasks_done;
    judge_node(*record, *task, *task->exit);
    if (verdict.fate == Fate::kSucceeded) {
      const double operations = task->counted_operations / task->spec.units;
      const double ran_s = static_cast<double>(task->exit->wall_ns) / 1e9;
      state_.registry.ran(*record, operations, ran_s);
      if (operations > 0 && ran_s > 0) state_.order.ran(operations, ran_s);
    }
  }
  if (verdict.fate == Fate::kSucceeded && copies_ && WriteCopies::are_wanted(state_, *task->exit))
    return wait_for_copies(*task, std::move(durable));
  finish(*task, verdict, std::move(durable));
}

void Lifecycle::wait_for_copies(Task& task, Durable durable) {
  detach(task, true);
  begin_to_wait(task, std::move(durable));
  copies_->begin(task.id, task.node, task.exit->written);
  hooks_.work_available();
}

void Lifecycle::begin_to_wait(Task& task, Durable durable) {
  state_.catalog.lock_writes(task);
  state_.tasks.advance(task, TaskState::kRunning);
  task.reason = "it has ended, and what it wrote is being copied to other nodes";
  write({task.id}, {}, std::move(durable));
  if (auto* node = state_.registry.find(task.node)) node->being_copied.insert(task.id);
}

void Lifecycle::copies_over(const Task& task, bool published) {
  if (auto* node = state_.registry.find(task.node)) node->being_copied.erase(task.id);
  copies_->end(task.id, published);
}

void Lifecycle::copied(uint64_t id) {
  auto& task = *state_.tasks.find(id);
  if (copies_->are_there(id)) {
    const auto of_it = task;
    conclude(task, {Fate::kSucceeded, {}}, nullptr);
    return copies_over(of_it, true);
  }
  copies_over(task, false);
  const auto why = fmt::format("what it wrote is not on node '{}' any more", task.node);
  conclude(task, judge_lost(task, why, state_.max_attempts(task)), nullptr);
}

void Lifecycle::resume_copies(WriteCopies& copies) {
  copies_ = &copies;
  for (const auto& [id, task] : state_.tasks.all())
    if (WriteCopies::were_wanted(state_, task)) {
      if (auto* node = state_.registry.find(task.node)) node->being_copied.insert(id);
      copies.resume(id, task.exit->written);
    }
}

int64_t Lifecycle::started_by_exit_ms(const Task& task, const TaskExit& exit) const {
  return std::max(state_.clock.wall_ms() - static_cast<int64_t>(exit.wall_ns / 1'000'000),
                  task.submitted_ms);
}

Task* Lifecycle::late_success(const std::string& node, AttemptId attempt, const TaskExit& exit) {
  auto* task = state_.tasks.find(attempt.task);
  const bool waits = task && task->state == TaskState::kQueued &&
                     task->attempt == attempt.attempt && task->node == node;
  const bool succeeded = waits && exit.how == TaskEnd::kExited && exit.code == 0;
  return succeeded && publication_.allowed(*task, node, exit) ? task : nullptr;
}

void Lifecycle::superseded(const std::string& node, AttemptId attempt, const TaskExit& exit,
                           Durable durable) {
  if (unwritten_.has(attempt.task))
    return call(durable, fail(ErrorCode::kIo, "the end of the task is not on disk yet"));
  publication_.superseded(node, exit.written);
  release(node, attempt);
  call(durable, {});
  if (state_.ending.over(node, attempt)) hooks_.work_available();
}

void Lifecycle::detach(Task& task, bool succeeded) {
  auto* node = state_.registry.find(task.node);
  if (node && state_.registry.release(*node, {task.id, task.attempt}, task.spec.own_units(),
                                      task.state == TaskState::kRunning)) {
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
  write({rank.id}, {}, std::move(durable));
  hooks_.rank_over(rank, verdict);
  hooks_.work_available();
}

void Lifecycle::end_ranks(const Task& gang, std::vector<uint64_t>& changed) {
  for (const uint64_t id : state_.tasks.ranks_of(gang.id)) {
    auto& rank = *state_.tasks.find(id);
    state_.tasks.advance(rank, gang.state);
    rank.finished_ms = gang.finished_ms;
    changed.push_back(id);
  }
}

void Lifecycle::finish(Task& task, Verdict verdict, Durable durable) {
  if (task.rank) return park(task, verdict, std::move(durable));
  detach(task, verdict.fate == Fate::kSucceeded);
  conclude(task, std::move(verdict), std::move(durable));
}

void Lifecycle::conclude(Task& task, Verdict verdict, Durable durable) {
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
    state_.tasks.enqueue(task);
  } else {
    task.finished_ms = state_.clock.wall_ms();
    if (verdict.fate == Fate::kSucceeded) {
      state_.tasks.advance(task, TaskState::kSucceeded);
      datasets = publication_.publish(task);
      end_ranks(task, changed);
      for (const uint64_t child : state_.tasks.release_children(task.id)) changed.push_back(child);
    } else {
      const bool failed = verdict.fate == Fate::kFailed;
      state_.tasks.advance(task, failed ? TaskState::kFailed : TaskState::kCancelled);
      end_ranks(task, changed);
      for (const uint64_t id : state_.tasks.descendants(task.id)) {
        auto& child = *state_.tasks.find(id);
        state_.tasks.advance(child, TaskState::kFailed);
        child.finished_ms = task.finished_ms;
        child.reason = fmt::format("task {}{} before it {}: {}", task.id,
                                   task.spec.name.empty() ? "" : " ('" + task.spec.name + "')",
                                   failed ? "failed" : "was cancelled", verdict.reason);
        changed.push_back(id);
        end_ranks(child, changed);
      }
    }
  }
  write(std::move(changed), std::move(datasets), std::move(durable));
  hooks_.work_available();
}

void Lifecycle::write(std::vector<uint64_t> changed, std::vector<Dataset> datasets,
                      Durable durable) {
  auto copies = std::make_shared<std::vector<Task>>();
  const auto published = std::make_shared<const std::vector<Dataset>>(std::move(datasets));
  for (const uint64_t id : changed) {
    const auto& task = *state_.tasks.find(id);
    copies->push_back(task);
    starts_.erase(id);
    if (is_over(task)) unwritten_.add(task);
  }
  state_.store.write(
      [copies, published](Db& db) -> Status {
        for (const auto& task : *copies)
          if (auto put = records::update_task(db, task); !put) return put;
        for (const auto& dataset : *published)
          if (auto put = records::put_dataset(db, dataset); !put) return put;
        return {};
      },
      [this, copies, published, durable = std::move(durable)](Status status) {
        if (status) publication_.durable(*published);
        for (const auto& task : *copies)
          if (status) written(task);
        call(durable, std::move(status));
      });
}

void Lifecycle::written(const Task& task) {
  const auto held = unwritten_.written(task);
  if (!held) return;
  // The task may have been placed anew meanwhile: that attempt goes on.
  for (const auto& [node, attempt] : *held) release(node, attempt);
  if (!is_ended(task.state)) return;
  state_.scores.ended(task);
  state_.catalog.remove_user(task);
  state_.load.remove(task.user, {1, task_bytes(task.spec)});
  state_.tasks.remove(task.id);
  hooks_.ended(task.id);
}

void Lifecycle::release(const std::string& name, AttemptId attempt) {
  const auto* node = state_.registry.find(name);
  if (node && node->link && attempt.attempt > 0) node->link->release(attempt);
}

void Lifecycle::retry_writes() {
  auto tasks = unwritten_.tasks();
  if (tasks.empty()) return;
  std::vector<Dataset> datasets;
  for (const auto& [name, entry] : state_.catalog.all()) datasets.push_back(entry.dataset);
  write(std::move(tasks), std::move(datasets), nullptr);
}

void Lifecycle::cancel(uint64_t id, Durable done) {
  auto* task = state_.tasks.find(id);
  if (!task || is_ended(task->state)) return call(done, {});
  if (task->rank) return cancel(task->rank->gang, std::move(done));
  if (task->state == TaskState::kWaiting || task->state == TaskState::kQueued)
    return finish(*task, {Fate::kCancelled, "cancelled"}, std::move(done));
  if (copies_ && copies_->waits(id)) {
    copies_over(*task, false);
    return conclude(*task, {Fate::kCancelled, "cancelled, and what it wrote is discarded"},
                    std::move(done));
  }
  task->cancel_asked = true;
  if (auto* node = state_.registry.find(task->node); node && node->link)
    node->link->cancel({id, task->attempt}, "cancelled");
  write({id}, {}, std::move(done));
  if (task->spec.is_gang()) hooks_.stop_gang(*task, "cancelled");
}

void Lifecycle::paused(AttemptId attempt, bool paused, Durable done) {
  auto* task = state_.tasks.find(attempt.task);
  if (!task || task->attempt != attempt.attempt || task->state != TaskState::kRunning)
    return call(done, {});
  task->reason = paused ? "paused" : "";
  write({task->id}, {}, std::move(done));
}

}  // namespace tierpilot

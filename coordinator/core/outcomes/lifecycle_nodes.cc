// What becomes of tasks when their nodes come back, go, or do not take them.
#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "base/text/utf8.h"
#include "coordinator/core/nodes/node_events.h"
#include "coordinator/core/nodes/node_memory.h"
#include "coordinator/core/outcomes/lifecycle.h"
#include "coordinator/store/backup.h"
#include "coordinator/store/records.h"

namespace tierpilot {
void Lifecycle::reconcile(NodeRecord& node, const std::set<AttemptId>& live, bool same) {
  state_.held.wake_all(node.slot);  // it may have other data and room than before
  const auto held = node.held;
  for (const auto& attempt : held) {
    auto* task = current(node.facts.name, attempt);
    if (!task) continue;
    if (!live.contains(attempt)) {
      const auto why =
          fmt::format("node '{}' does not have it{}", node.facts.name, same ? "" : " any more");
      finish(*task,
             same ? Verdict{Fate::kAgain, why, false}
                  : judge_lost(*task, why, state_.max_attempts(*task)),
             nullptr);
    } else if (task->cancel_asked && node.link)
      node.link->cancel(attempt, "cancelled");
  }
  const auto has_ended = [&](AttemptId attempt) {
    return copies_ && copies_->waits(attempt.task) && current(node.facts.name, attempt);
  };
  state_.ending.forget_node(node.facts.name);
  for (const auto& attempt : live) {
    if (held.contains(attempt) || !node.link || has_ended(attempt) || adopt(node, attempt))
      continue;
    if (const auto* task = state_.tasks.find(attempt.task))
      state_.ending.add(placed_as(*task), node.facts.name, attempt);
    node.link->cancel(attempt, "superseded");
  }
  writes_.write_noted();
}

bool Lifecycle::adopt(NodeRecord& node, AttemptId attempt) {
  auto* task = state_.adopting() ? state_.tasks.find(attempt.task) : nullptr;
  // A gang is begun as a whole, once this one is over; what a task has of a unit its node does not
  // tell, and it would be given to others as well.
  if (!task || task->rank || task->spec.is_shared() || task->attempt >= attempt.attempt ||
      task->state == TaskState::kWaiting || is_ended(task->state))
    return false;
  if (copies_ && copies_->waits(task->id))
    copies_->end(task->id, false);
  else if (task->state != TaskState::kQueued)
    detach(*task, false);
  task->exit.reset();
  state_.tasks.advance(*task, TaskState::kAssigned);
  task->attempt = attempt.attempt;
  task->node = node.facts.name;
  task->reason.clear();
  state_.registry.assign(node, attempt, task->spec.own_units(), task->spec.swap_room_bytes);
  state_.catalog.lock_writes(*task);
  spdlog::info("task {}: attempt {} on node '{}' is adopted", task->id, attempt.attempt,
               node.facts.name);
  writes_.note_adopted(*task);
  return true;
}

void Lifecycle::end_adopting() {
  if (state_.adopt_until_ns == 0 || state_.adopting() || !state_.ending.empty() ||
      writes_.has_unwritten_adoption())
    return;
  state_.adopt_until_ns = 0;
  state_.owed.write(restored::kAdopting,
                    [](Db& db) { return records::put_setting(db, restored::kAdopting, 0); });
}

void Lifecycle::give_up(NodeRecord& node, const std::string& why) {
  state_.registry.set_life(node, NodeLife::kLost);
  if (node.has_left || std::exchange(node.was_lost, true)) {
    spdlog::info("node '{}': {}", node.facts.name, why);
  } else {
    note(state_, node.facts.name, node.life_name(), why);
    remember(state_, node);
  }
  node.link.reset();
  state_.catalog.forget_node(node.facts.name);
  state_.ending.forget_node(node.facts.name);
  state_.held.wake_all(node.slot);
  const auto held = node.held;
  for (const auto& attempt : held)
    if (auto* task = current(node.facts.name, attempt))
      finish(*task, judge_lost(*task, why, state_.max_attempts(*task)), nullptr);
  if (copies_)
    for (const uint64_t id : copies_->tasks())
      if (state_.tasks.find(id)->node == node.facts.name && !copies_->are_there(id)) copied(id);
  state_.units_changed();
}

void Lifecycle::unassign(Task& task, const std::string& why) {
  if (task.cancel_asked) return finish(task, {Fate::kCancelled, "cancelled"}, nullptr);
  detach(task, false);
  task.reason = why;
  --task.attempt;  // it never left the coordinator
  state_.tasks.enqueue(task);
}

void Lifecycle::unassign_rank(Task& rank, uint32_t attempt_before) {
  detach(rank, false);
  rank.attempt = attempt_before;
  state_.tasks.advance(rank, TaskState::kWaiting);
}

void Lifecycle::refused(const std::string& node, AttemptId attempt, const Error& error) {
  auto* task = current(node, attempt);
  if (!task || task->state != TaskState::kAssigned) return;
  constexpr size_t kMostReasonBytes = 1024;  // a node may say anything
  const auto why =
      fmt::format("node '{}' refused it: {}", node, beginning(error.message, kMostReasonBytes));
  if (error.code == ErrorCode::kInvalid) return finish(*task, {Fate::kFailed, why}, nullptr);
  auto& record = *state_.registry.find(node);
  // An error that is no refusal of its own may have come after it took the task.
  if (record.link && (error.code == ErrorCode::kIo || error.code == ErrorCode::kTimeout))
    record.link->cancel(attempt, "its start failed");
  const int64_t now_ns = state_.clock.boot_ns();
  record.health.keep_off(placed_as(*task), task->faults++, now_ns);
  const bool closed = error.code == ErrorCode::kUnavailable
                          ? record.health.refused(error.message, now_ns)
                          : record.health.failed_to_start(placed_as(*task), error.message, now_ns);
  if (closed) close_node(state_, record);
  finish(*task, {Fate::kAgain, why, false}, nullptr);
}

void Lifecycle::take_back(const std::string& node, AttemptId attempt, const std::string& why) {
  auto* task = current(node, attempt);
  if (!task || task->state != TaskState::kAssigned) return;
  finish(*task, {Fate::kAgain, fmt::format("node '{}': {}", node, why), false}, nullptr);
}

}  // namespace tierpilot

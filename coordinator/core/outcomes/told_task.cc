#include "coordinator/core/outcomes/told_task.h"

#include <utility>

#include "coordinator/store/records.h"

namespace tierpilot {
namespace {

bool has_ended_a_trial(const Task& task) {
  return task.share && task.share->trial_end != TrialEnd::kNone;
}

}  // namespace

Task told_task(const ClusterState& state, Task stored) {
  const auto* now = state.tasks.find(stored.id);
  if (!now || is_ended(stored.state)) return stored;
  if (!is_ended(now->state)) {
    Task told = *now;
    if (has_ended_a_trial(told))
      told.share->trial_end = stored.share ? stored.share->trial_end : TrialEnd::kNone;
    return told;
  }
  if (stored.state == TaskState::kAssigned && now->started_ms > 0) {
    stored.state = TaskState::kRunning;
    stored.started_ms = now->started_ms;
  }
  stored.reason = "it has ended, which is not on disk yet";
  return stored;
}

Result<std::optional<Task>> told_task(const ClusterState& state, uint64_t id) {
  const auto* now = state.tasks.find(id);
  if (now && !is_ended(now->state) && !has_ended_a_trial(*now)) return *now;
  auto stored = records::task(state.store.reader(), id);
  if (stored && *stored) return told_task(state, std::move(**stored));
  return stored;
}

}  // namespace tierpilot

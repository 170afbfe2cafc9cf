#include "coordinator/core/outcomes/told_task.h"

#include <utility>

#include "coordinator/store/records.h"

namespace tierpilot {

Task told_task(const ClusterState& state, Task stored) {
  const auto* now = state.tasks.find(stored.id);
  if (!now || is_ended(stored.state)) return stored;
  if (!is_ended(now->state)) return *now;
  if (stored.state == TaskState::kAssigned && now->started_ms > 0) {
    stored.state = TaskState::kRunning;
    stored.started_ms = now->started_ms;
  }
  stored.reason = "it has ended, which is not on disk yet";
  return stored;
}

Result<std::optional<Task>> told_task(const ClusterState& state, uint64_t id) {
  if (const auto* now = state.tasks.find(id); now && !is_ended(now->state)) return *now;
  auto stored = records::task(state.store.reader(), id);
  if (stored && *stored) return told_task(state, std::move(**stored));
  return stored;
}

}  // namespace tierpilot

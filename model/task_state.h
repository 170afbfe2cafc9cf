// How far a task is, as the coordinator has it.
#pragma once

#include <optional>
#include <string_view>

namespace tierpilot {

// waiting: for tasks it depends on. queued: for a node. assigned: given to a node, not running yet.
// Stores have the number.
enum class TaskState { kWaiting, kQueued, kAssigned, kRunning, kSucceeded, kFailed, kCancelled };

inline bool is_ended(TaskState state) {
  return state >= TaskState::kSucceeded;
}

// "waiting", "queued", ...; a string literal.
const char* task_state_name(TaskState state);
std::optional<TaskState> parse_task_state(std::string_view text);

}  // namespace tierpilot

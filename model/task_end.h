// How an attempt ended: what a node tells of it, what is stored, shown and judged.
#pragma once

#include <optional>
#include <string_view>

namespace tierpilot {

// The first cause counts: a task that exits 0 on the SIGTERM of a cancel is kCancelled, with exit
// code 0. Nodes keep records with the numbers.
enum class TaskEnd {
  kExited,
  kSignalled,
  kCouldNotStart,
  kCancelled,
  kTimedOut,
  kLeaseExpired,
  kMemoryLimit,
  kLost,  // its supervisor or the warden was killed: it is dead, but how far it got is unknown
  kDataFailed,  // its data could not be served, or what it wrote not be kept
  kUnknown,     // said by a newer program in a word that this one does not know
};
inline constexpr int kTaskEnds = static_cast<int>(TaskEnd::kUnknown) + 1;

// "exited", "memory_limit", ...; a string literal.
std::string_view task_end_name(TaskEnd how);
std::optional<TaskEnd> parse_task_end(std::string_view text);

}  // namespace tierpilot

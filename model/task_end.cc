#include "model/task_end.h"

#include "model/names.h"

namespace tierpilot {
namespace {

constexpr std::array<std::string_view, kTaskEnds> kNames{
    "exited",       "signalled", "could_not_start", "cancelled", "timed_out", "lease_expired",
    "memory_limit", "lost",      "data_failed",     "unknown"};

}  // namespace

std::string_view task_end_name(TaskEnd how) {
  return name_in(kNames, how);
}

std::optional<TaskEnd> parse_task_end(std::string_view text) {
  return parse_in<TaskEnd>(kNames, text);
}

}  // namespace tierpilot

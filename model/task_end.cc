#include "model/task_end.h"

#include "model/names.h"

namespace tierpilot {
namespace {

constexpr std::array<std::string_view, kTaskEnds> kEndNames{
    "exited",       "signalled", "could_not_start", "cancelled", "timed_out", "lease_expired",
    "memory_limit", "lost",      "data_failed",     "unknown"};

}  // namespace

std::string_view task_end_name(TaskEnd how) {
  return name_in(kEndNames, how);
}

std::optional<TaskEnd> parse_task_end(std::string_view text) {
  return parse_in<TaskEnd>(kEndNames, text);
}

}  // namespace tierpilot

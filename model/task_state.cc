#include "model/task_state.h"

#include "model/names.h"

namespace tierpilot {
namespace {

constexpr std::array<std::string_view, 7> kStateNames{"waiting",   "queued", "assigned", "running",
                                                      "succeeded", "failed", "cancelled"};

}  // namespace

const char* task_state_name(TaskState state) {
  return name_in(kStateNames, state).data();
}

std::optional<TaskState> parse_task_state(std::string_view text) {
  return parse_in<TaskState>(kStateNames, text);
}

}  // namespace tierpilot

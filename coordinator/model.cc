#include "coordinator/model.h"

#include <array>

namespace tierpilot {
namespace {

constexpr std::array<const char*, 7> kStateNames{"waiting",   "queued", "assigned", "running",
                                                 "succeeded", "failed", "cancelled"};

}  // namespace

const char* task_state_name(TaskState state) {
  return kStateNames[static_cast<size_t>(state)];
}

std::optional<TaskState> task_state_from_name(const std::string& name) {
  for (size_t i = 0; i < kStateNames.size(); ++i)
    if (name == kStateNames[i]) return static_cast<TaskState>(i);
  return std::nullopt;
}

}  // namespace tierpilot

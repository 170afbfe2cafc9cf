#include "daemon/exec/warden/lost_tasks.h"

#include <signal.h>

#include <utility>

#include "daemon/exec/process.h"

namespace tierpilot {
namespace {

constexpr int kRetryMs = 20;
constexpr int kLateRetryMs = 1'000;  // of those that nobody waits for

}  // namespace

void LostTasks::add(ProcessExit exit, std::optional<TaskLaunch> remains) {
  lost_.push_back({std::move(exit), std::move(remains), std::chrono::steady_clock::now()});
}

void LostTasks::may_be_strays() {
  if (!std::exchange(strays_, true)) strays_since_ = std::chrono::steady_clock::now();
}

bool LostTasks::wait(std::chrono::milliseconds patience) const {
  return !lost_.empty() || (strays_ && std::chrono::steady_clock::now() - strays_since_ < patience);
}

int LostTasks::look_again_ms() const {
  if (!lost_.empty()) return kRetryMs;
  return strays_ ? kLateRetryMs : -1;
}

std::vector<LostTasks::Lost> LostTasks::kill_strays(const std::function<bool(pid_t)>& is_supervisor,
                                                    std::chrono::milliseconds patience) {
  std::vector<Lost> told;
  if (look_again_ms() < 0) return told;
  const auto children = children_of_self();
  bool none_left = children.has_value();  // else they are looked for again soon
  for (const pid_t child : children.value_or(std::vector<pid_t>())) {
    if (is_supervisor(child)) continue;
    none_left = false;
    ::kill(child, SIGKILL);
  }
  if (none_left)
    strays_ = false;
  else
    may_be_strays();
  for (auto& lost : std::exchange(lost_, {})) {
    if (!none_left && std::chrono::steady_clock::now() - lost.since < patience) {
      lost_.push_back(std::move(lost));
      continue;
    }
    if (!none_left) lost.exit.reason += "; processes that it left could not be killed yet";
    told.push_back(std::move(lost));
  }
  return told;
}

}  // namespace tierpilot

// Attempts whose supervisors were killed, and the processes that these have left, which the warden
// has adopted.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "daemon/exec/messages.h"

namespace tierpilot {

class LostTasks {
 public:
  struct Lost {
    ProcessExit exit;
    std::optional<TaskLaunch> remains;  // what it is to be cleared of
    std::chrono::steady_clock::time_point since;
  };

  void add(ProcessExit exit, std::optional<TaskLaunch> remains);
  // A supervisor was killed, that may have told the end of its task before.
  void may_be_strays();
  // Whether there is something to do yet, or for as long as `patience` something to kill.
  bool wait(std::chrono::milliseconds patience) const;
  // When to look at them again; -1: there is nothing to look for.
  int look_again_ms() const;

  // Kills all children that are no supervisors. Whose end is to be told now: nothing is left of
  // them, or for as long as `patience` what is left cannot be killed, as it is stuck in the kernel.
  std::vector<Lost> kill_strays(const std::function<bool(pid_t)>& is_supervisor,
                                std::chrono::milliseconds patience);

 private:
  std::vector<Lost> lost_;
  bool strays_ = false;  // there may be some
  std::chrono::steady_clock::time_point strays_since_;
};

}  // namespace tierpilot

// The processes of an attempt that runs.
#pragma once

#include <sys/types.h>

#include <vector>

#include "daemon/exec/executor.h"
#include "daemon/exec/process_tree.h"

namespace tierpilot::agent {

class TaskProcesses {
 public:
  TaskProcesses() = default;
  TaskProcesses(const Executor& executor, pid_t leader) {
    const pid_t supervisor = parent_of(leader);
    // Else it has ended already, and somebody else has adopted what is left.
    if (parent_of(supervisor) == executor.warden_pid()) supervisor_ = supervisor;
  }

  pid_t supervisor() const { return supervisor_; }  // 0: not known
  // Nothing where its supervisor is no child of the warden (any more): whose processes they would
  // be then is not known, and they must not be stopped.
  std::vector<pid_t> now(const Executor& executor) const {
    if (supervisor_ <= 1 || parent_of(supervisor_) != executor.warden_pid()) return {};
    return descendants(supervisor_);
  }
  // The same, as of the last time when there was time to look.
  const std::vector<pid_t>& list(const Executor& executor) {
    pace_.look([&] { known_ = now(executor); });
    return known_;
  }

 private:
  pid_t supervisor_ = 0;
  LookPace pace_;
  std::vector<pid_t> known_;
};

}  // namespace tierpilot::agent

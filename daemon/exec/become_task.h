// The last steps of a new process on its way from supervisor to task.
#pragma once

#include <optional>

#include "base/result.h"
#include "daemon/exec/cgroup.h"
#include "daemon/exec/options.h"
#include "daemon/exec/task.h"

namespace tierpilot {

struct StartFault {
  Error error;
  bool its_own = false;  // the task's: on another machine it would not start either
};

// For a fresh child of `supervisor`. Returns only when it failed, with a reason for people such as
// "cannot run 'foo': No such file or directory". Other descriptors than the streams are closed by
// the execve, not before: the caller can still report the reason.
StartFault become_task(const TaskLaunch& task, const std::optional<TaskCgroup>& cgroup,
                       const ExecutorOptions& options, pid_t supervisor);

}  // namespace tierpilot

// Turns what is known of an ended task into its ProcessExit.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "daemon/exec/cgroup.h"
#include "daemon/exec/task.h"

namespace tierpilot {

struct TaskEnding {
  std::optional<int> wait_status;       // of the task's first process
  std::string start_fault;              // why it could not start; empty when it did
  bool start_fault_is_its_own = false;  // not this machine's
  std::optional<TaskEnd> stopped;       // why it was stopped, when it was
  int64_t started_boot_ns = 0;
  int64_t ended_boot_ns = 0;
  std::optional<CgroupFigures> cgroup;
  size_t unkilled = 0;  // processes that are still there
};

// The resource figures are those of the calling process's waited-for children.
ProcessExit exit_report(const TaskLaunch& task, const TaskEnding& ending);

}  // namespace tierpilot

// One process per task, between warden and task: it adopts whatever the task detaches, so that "no
// child left" means that no process of the task is left, and its children's resource usage is the
// task's.
#pragma once

#include "daemon/exec/cgroup.h"
#include "daemon/exec/lifeline.h"
#include "daemon/exec/message_socket.h"
#include "daemon/exec/options.h"
#include "daemon/exec/task.h"

namespace tierpilot {

// For a fresh child of the warden. Reports TaskStarted and ProcessExit on `warden`, obeys its
// StopTask, and kills the task when `warden` closes.
[[noreturn]] void supervise(const TaskLaunch& task, const ExecutorOptions& options,
                            const CgroupTree& cgroups, UniqueFd warden, Lifeline lifeline);

// For a fresh child of the warden, in place of a supervisor that was killed when no process of its
// task was left: reports TaskCleared.
[[noreturn]] void clear_after(const TaskLaunch& task, UniqueFd warden, Lifeline lifeline);

}  // namespace tierpilot

// Makes sure that nothing is left of a user whom one task had for itself, before another gets it.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "daemon/exec/task.h"

namespace tierpilot {

bool has_processes(uid_t uid);

// As this user, in a process of its own: kills all its processes, and removes what it has in /tmp,
// /var/tmp and /dev/shm, its message queues and its System V memory. The error tells what is still
// there. Blocks, for some seconds at most.
Status clear_user(uid_t uid, gid_t gid);

// Takes back what a task with another user had, when none of its processes is left, and clears the
// user if it was the task's alone. Says what is left; empty: nothing. Blocks as long as it takes.
std::string clear_task(const TaskLaunch& task);

}  // namespace tierpilot

// Tasks that run as other users than the daemon, and what that takes.
#pragma once

#include <string>

#include "base/result.h"
#include "daemon/exec/task.h"

namespace tierpilot {

// Capabilities that starting tasks as other users needs and this process lacks: " CAP_CHOWN
// CAP_KILL".
std::string missing_user_privileges();
// The calling process, which must have one thread, gives these capabilities up for good.
Status give_up_user_privileges();

// No setuid program can raise what the calling process may, nor what it becomes.
Status bound_privileges();
// The calling process, which must have one thread, becomes the user. Its death signal is gone then.
Status become_user(const TaskUser& user);
// No capability is left.
Status give_up_all_privileges();

}  // namespace tierpilot

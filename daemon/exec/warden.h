// The process between daemon and tasks. It needs nothing from the daemon to keep the lease: when
// the deadline passes, or the daemon's socket closes, every task is killed.
#pragma once

#include "base/unique_fd.h"
#include "daemon/exec/cgroup.h"
#include "daemon/exec/lifeline.h"
#include "daemon/exec/options.h"

namespace tierpilot {

// For a fresh child of `daemon`, which holds the other end of `socket`.
[[noreturn]] void run_warden(const ExecutorOptions& options, const CgroupTree& cgroups,
                             UniqueFd socket, Lifeline lifeline, pid_t daemon);

}  // namespace tierpilot

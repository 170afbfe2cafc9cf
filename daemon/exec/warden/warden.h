// The process between daemon and tasks. It needs nothing from the daemon to keep the lease: when
// the deadline passes, or the daemon's socket closes, every task is killed. A pause of the virtual
// machine shortens the lease, though the boot clock stood still.
#pragma once

#include "base/unique_fd.h"
#include "daemon/exec/cgroup.h"
#include "daemon/exec/hardware_clock.h"
#include "daemon/exec/lifeline.h"
#include "daemon/exec/options.h"

namespace tierpilot {

// For a fresh child of `daemon`, which holds the other end of `socket`. `hardware_clock` is null
// where there is none.
[[noreturn]] void run_warden(const ExecutorOptions& options, const CgroupTree& cgroups,
                             const HardwareClock* hardware_clock, UniqueFd socket,
                             Lifeline lifeline, pid_t daemon);

}  // namespace tierpilot

// What is the same for every task of an executor.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/sysroot.h"

namespace tierpilot {

// Before the name of an attempt's folder that is being removed.
inline constexpr std::string_view kRemovedPrefix = ".removed-";

struct ExecutorOptions {
  // For finding cgroups and the hardware clock; processes are always real.
  Sysroot sysroot = Sysroot();
  // See CgroupTree::open.
  std::string cgroup;
  // Working and log directories at or below it are created when absent; others must exist. One
  // executor at a time runs tasks there; empty: nothing is created, and nobody excluded.
  std::string task_root;
  // In each of them attempts have folders as "7-1" (TaskLaunch::given_folders): start() removes
  // those that a killed predecessor has left. One executor at a time has each of them, too.
  std::vector<std::string> folder_roots{};
  // Tasks may have users of their own: start() then needs the privileges for it, and leaves them to
  // warden and supervisors alone. Otherwise every task runs as the daemon.
  bool other_users = false;
  // Which of them tasks have for themselves, so that all that is theirs may be cleared away; 0:
  // none.
  uid_t first_reserved = 0, last_reserved = 0;
  uid_t lowest_user = 1000;  // none below it is touched

  bool reserves(uid_t uid) const {
    return first_reserved != 0 && first_reserved <= uid && uid <= last_reserved;
  }
  // How long start() waits for the tasks of a killed predecessor to be gone from task_root.
  int64_t start_patience_ms = 15'000;
  // Above the daemon's, so that tasks give way to it, and the kernel's memory killer prefers them.
  int task_nice = 5;
  int task_oom_score_adj = 500;
  uint64_t core_limit_bytes = 0;
  uint64_t task_descriptors = 0;  // the soft limit of a task; 0: the warden's
  // Between SIGTERM and SIGKILL for a task that reached its time limit.
  int64_t time_limit_grace_ms = 2'000;
  // A task's exit is told after this although a process of it is left: one that is stuck in the
  // kernel, and runs no more code, or a fork bomb that outruns the killing.
  int64_t kill_patience_ms = 10'000;
};

}  // namespace tierpilot

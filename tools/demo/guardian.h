// Runs work in a child process and leaves no process behind, however the work ends: by returning,
// by a signal to either of the two, or by a crash.
#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>

namespace tierpilot::demo {

class Guardian {
 public:
  // From here on SIGINT, SIGTERM and SIGHUP wait until run(): what is made before it can be removed
  // after it. Make one before there are threads.
  Guardian();

  // Forks; `work` runs in the child, and its return value is the exit code. A signal ends the work;
  // the code is then 128 + signal. Afterwards every process that came from the work gets SIGTERM,
  // and SIGKILL after `grace_ms`.
  //
  // This process becomes the reaper of its orphaned descendants (PR_SET_CHILD_SUBREAPER), so none
  // can hide behind a parent that has died. If it is itself killed by SIGKILL, the work is too
  // (PR_SET_PDEATHSIG).
  int run(const std::function<int()>& work, int64_t grace_ms);

 private:
  sigset_t signals_;   // blocked, and taken by sigtimedwait: no handler, no race
  sigset_t old_mask_;  // for the worker
};

}  // namespace tierpilot::demo

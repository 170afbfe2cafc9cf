// Runs tasks so that the promise "no task runs twice at once" survives the daemon.
//
//   tierpilotd ---socket--- warden -+- supervisor 7.1 -- task 7 and all that it forks
//                                   +- supervisor 8.1 -- task 8 ...
//
// The warden is forked at start, lives in a session of its own, keeps the lease itself and kills
// every task when it ends, or when the daemon is gone: stopped, hung or killed, the daemon is not
// needed for that. A supervisor kills its task when the warden is gone.
//
// Not thread-safe: one thread calls everything.
#pragma once

#include <sys/types.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"
#include "daemon/exec/cgroup.h"
#include "daemon/exec/message_socket.h"
#include "daemon/exec/options.h"
#include "daemon/exec/task.h"

namespace tierpilot {

class Executor {
 public:
  // Forks the warden. kConflict once the process has threads (a fork would copy their locks), or
  // when tasks of another daemon still run in task_root; see options.h for how long it waits.
  static Result<std::unique_ptr<Executor>> start(ExecutorOptions options);
  // Ends every task, and returns when none is left (or, logged, after 15 s).
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Asynchronous: TaskStarted and ProcessExit follow, or ProcessExit kCouldNotStart alone. Errors:
  // kInvalid for a malformed or too large description, kConflict when this or a later attempt was
  // launched before or another attempt still runs, kUnavailable without a lease or warden,
  // kExhausted.
  Status launch(const TaskLaunch& task);
  // SIGTERM to the task's group, after `grace_ms` SIGKILL to all that is left of the task; 0:
  // SIGKILL at once. kNotFound when it does not run (any more).
  Status cancel(uint64_t task_id, uint32_t attempt, int64_t grace_ms);
  // Stops every process of the task where it is, or lets them go on; the kernel needs a moment for
  // it. Time limit and lease count on, and a frozen task can be ended, but a SIGTERM only reaches
  // it when it is thawed. kUnavailable without a cgroup, kNotFound as for cancel().
  Status freeze(uint64_t task_id, uint32_t attempt) { return set_frozen(task_id, attempt, true); }
  Status thaw(uint64_t task_id, uint32_t attempt) { return set_frozen(task_id, attempt, false); }
  // While it runs: only on these CPUs, and of their time so many cores'. kUnavailable: this machine
  // gives tasks no cgroup with a CPU quota.
  Status confine(uint64_t task_id, uint32_t attempt, const std::vector<int>& cpus, double cores);
  // Nothing where tasks have none.
  std::optional<TaskCgroup> cgroup(uint64_t task_id, uint32_t attempt) const {
    return cgroups_.find(task_id, attempt);
  }
  // CLOCK_BOOTTIME. A deadline that has passed or is earlier than the present one changes nothing.
  Status extend_lease(int64_t deadline_boot_ns);
  // Frees the memory of an ended task's attempts, after which launch() accepts them again: call it
  // when whoever sent the launch has confirmed the exit and cannot repeat it.
  void forget(uint64_t task_id);

  // Readable when poll() has something to do or to tell.
  int event_fd() const { return events_.get(); }
  // Never blocks. A task's exit is told exactly once, if the warden dies as kLost.
  std::vector<TaskEvent> poll();

  // False: it is dead or dying, its tasks too, and every launch is refused. Restart the daemon.
  bool warden_alive() const { return channel_.fd() >= 0; }
  pid_t warden_pid() const { return warden_; }
  const LimitsReport& limits() const { return cgroups_.limits(); }

 private:
  struct Attempt {
    uint32_t attempt;
    bool running;
  };

  Executor(MessageSocket channel, UniqueFd lifeline, UniqueFd events, pid_t warden,
           CgroupTree cgroups);
  Status check_running(uint64_t task_id, uint32_t attempt) const;
  Status set_frozen(uint64_t task_id, uint32_t attempt, bool frozen);
  Status send(const ExecMessage& message, bool urgent);
  void watch_channel();
  void receive(std::vector<TaskEvent>& told);
  void lose_warden();
  void report_lost(std::vector<TaskEvent>& told);

  MessageSocket channel_;
  UniqueFd lifeline_;  // end of file: neither warden nor supervisors are left
  UniqueFd events_;
  pid_t warden_;
  CgroupTree cgroups_;
  int64_t lease_deadline_boot_ns_ = 0;
  std::unordered_map<uint64_t, Attempt> launched_;  // by task, its latest attempt
};

}  // namespace tierpilot

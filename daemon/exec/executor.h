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
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "daemon/exec/cgroup.h"
#include "daemon/exec/file_requests.h"
#include "daemon/exec/latest_attempts.h"
#include "daemon/exec/message_socket.h"
#include "daemon/exec/options.h"
#include "daemon/exec/task.h"
#include "daemon/exec/warden/warden_link.h"

namespace tierpilot {

// Its end ends every task, and returns when none is left (or, logged, after 15 s).
class Executor {
 public:
  // Forks the warden. kConflict once the process has threads (a fork would copy their locks), or
  // when tasks of another daemon still run in task_root; see options.h for how long it waits.
  static Result<std::unique_ptr<Executor>> start(ExecutorOptions options);
  // Of tasks of an earlier executor, with something left that could not be cleared away.
  const std::set<uid_t>& uncleared_users() const { return uncleared_users_; }

  // Asynchronous: TaskStarted and ProcessExit follow, or ProcessExit kCouldNotStart alone; and of a
  // task with a user of its own TaskCleared. Errors:
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
  // The same without a cgroup, by signals, for those of its processes that are there. Best effort.
  void stand_still(uint64_t task_id, uint32_t attempt, bool still);
  // Opens a regular file for reading, as the task may, in its working directory. `done` is called
  // once, from poll(); kUnreachable: the task has ended.
  using Opened = FileRequests::Opened;
  void open_file(uint64_t task_id, uint32_t attempt, const std::string& path, Opened done);
  // While it runs: only on these CPUs, and of their time so many cores'. kUnavailable: this machine
  // gives tasks no cgroup with a CPU quota.
  Status confine(uint64_t task_id, uint32_t attempt, const std::vector<int>& cpus, double cores);
  // Nothing where tasks have none.
  std::optional<TaskCgroup> cgroup(uint64_t task_id, uint32_t attempt) const {
    return cgroups_.find(task_id, attempt);
  }
  // CLOCK_BOOTTIME: until when, and when that was asked for. A deadline that has passed or is
  // earlier than the present one changes nothing, nor does one from before a pause of the machine.
  Status extend_lease(int64_t deadline_boot_ns, int64_t asked_boot_ns);
  // Frees the memory of an ended task's attempts, after which launch() accepts them again: call it
  // when whoever sent the launch has confirmed the exit and cannot repeat it.
  void forget(uint64_t task_id);

  // Readable when poll() has something to do or to tell.
  int event_fd() const { return warden_.event_fd(); }
  // Never blocks. A task's exit is told exactly once, if the warden dies as kLost.
  std::vector<TaskEvent> poll();

  // False: it is dead or dying, its tasks too, and every launch is refused. Restart the daemon.
  bool warden_alive() const { return warden_.alive(); }
  pid_t warden_pid() const { return warden_.warden(); }
  const LimitsReport& limits() const { return cgroups_.limits(); }
  // Empty: the warden notices when the machine was paused; otherwise why it cannot.
  const std::string& why_pauses_pass_unnoticed() const { return why_pauses_pass_unnoticed_; }

 private:
  Executor(MessageSocket channel, UniqueFd lifeline, UniqueFd events, pid_t warden,
           CgroupTree cgroups, std::string why_pauses_pass_unnoticed);
  Status set_frozen(uint64_t task_id, uint32_t attempt, bool frozen);
  void receive(std::vector<TaskEvent>& told);
  void report_lost(std::vector<TaskEvent>& told);
  ProcessExit as_kept(ProcessExit exit) const;

  CgroupTree cgroups_;
  std::string task_root_;
  std::set<uid_t> uncleared_users_;
  std::string why_pauses_pass_unnoticed_;
  int64_t lease_deadline_boot_ns_ = 0;
  LatestAttempts attempts_;
  FileRequests requests_;
  WardenLink warden_;  // last: ends first, and with it every task
};

}  // namespace tierpilot

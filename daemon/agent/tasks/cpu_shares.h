// Keeps running attempts to their shares of the CPUs, and knows what they used: by a cgroup's
// quota, or, where tasks have none, by CPU affinity and by stopping and continuing their processes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/agent/tasks/task_processes.h"
#include "daemon/agent/tasks/task_runner.h"
#include "daemon/agent/tasks/use_tokens.h"
#include "daemon/exec/executor.h"
#include "daemon/exec/process_tree.h"
#include "rpc/event_loop.h"

namespace tierpilot::agent {

// Owned by the event loop's thread.
class CpuShares {
 public:
  CpuShares(EventLoop& loop, Executor& executor);

  void begin(AttemptId attempt, pid_t leader);
  void set(AttemptId attempt, const CpuShare& share);
  // It is asked to end: a process that stands still would not hear of it.
  void let_go(AttemptId attempt);
  void end(AttemptId attempt);
  // Of all its processes until now; 0: not known.
  uint64_t cpu_ns(AttemptId attempt);
  // That its threads were ready to compute and had no CPU, or stood still for their share; of those
  // that have not ended between two calls.
  uint64_t waited_ns(AttemptId attempt);

 private:
  struct Running {
    AttemptId attempt;
    TaskProcesses processes;
    CpuMeter meter;
    std::optional<CpuShare> share;
    bool by_tokens = false;
    UseTokens tokens;
    int64_t spent_ns = 0;  // of what the meter says
    bool stands = false;
    int64_t stands_since_ns = 0;
    uint64_t waited_ns = 0;
    LookPace delays_pace;
    std::map<pid_t, int64_t> delays_ns{};  // when last looked at
  };

  void watch();
  void check();
  void keep(Running& running, bool new_period);
  void signal(Running& running, bool stop);
  void count_delays(Running& running);
  static void count_standing(Running& running);

  EventLoop& loop_;
  Executor& executor_;
  std::map<AttemptId, Running> running_;
  bool watching_ = false;
  int checks_ = 0;
  // Timers that outlive it find it gone.
  std::shared_ptr<CpuShares*> self_;
};

}  // namespace tierpilot::agent

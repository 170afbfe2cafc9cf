// The life of every attempt on this node:
//
//   staging -> ready -> running -> committing -> ended
//
// staging: the pool brings the data into the fast tier, also while the CPUs are busy; ready: waits
// for compute units, in the order that the coordinator gave; running: a process; committing: the
// pool takes over what the task wrote; ended: kept so that a repeated start does not run it again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "daemon/agent/node/model.h"
#include "daemon/agent/tasks/admission.h"
#include "daemon/agent/tasks/attempts.h"
#include "daemon/agent/tasks/cpu_allocator.h"
#include "daemon/agent/tasks/data_plane.h"
#include "daemon/agent/tasks/unit_shares.h"

namespace tierpilot::agent {

// Owned by the event loop's thread.
class TaskTable {
 public:
  using Report = std::function<void(EventBody)>;

  TaskTable(NodeLimits limits, DataPlane& data, TaskRunner& runner, const Clock& clock,
            Report report);

  // May be repeated. Refused: what this node can never run, and an attempt older than one it knows.
  // A newer attempt of a task cancels the older one and begins when that has ended.
  Status start(Assignment assignment);
  // Ends the attempt wherever it is; an ended or unknown one is left alone.
  void cancel(AttemptId attempt, const std::string& reason);
  // Stops a running attempt's processes where they are, or lets them go on. Lease, time limit and
  // units count on. kNotFound when it does not run, kUnavailable without cgroups.
  Status pause(AttemptId attempt, bool paused);
  // Cancels what has not been launched and refuses what comes; what runs goes on.
  void drain(const std::string& reason);
  // Cancels everything and refuses what comes.
  void close(const std::string& reason);
  // Why no task is taken; empty: tasks are taken.
  std::string closed_because() const { return closed_.value_or(""); }
  // Before the first start: ends that an earlier daemon may not have told. They are reported.
  void restore(std::vector<std::pair<AttemptId, ExitReport>> ended);
  // The coordinator has the exit for good.
  void release(AttemptId attempt);
  void exit_acknowledged(AttemptId attempt);

  void started(AttemptId attempt, int32_t pid);
  // A coordinator knows this node anew. What runs is reported again: one that died may have
  // acknowledged a start and not kept it. What it acknowledged the end of is forgotten: its release
  // may have gone with the last connection, and over this one nobody starts it.
  void registered();
  void exited(AttemptId attempt, ExitReport exit);

  // Nothing is launched while the lease does not hold.
  void lease_granted(int64_t deadline_ns);
  // Ends all that has not been launched; the executor ends what runs.
  void lease_ended();

  const Attempts& attempts() const { return attempts_; }
  UnitShares& shares() { return shares_; }
  uint32_t running_units() const { return cpus_.busy_units(); }

 private:
  void begin_staging(Attempt& attempt);
  void staged(Attempt& attempt, Result<Served> data);
  void launch_ready();
  void launch(Attempt& attempt, CpuAllocator::Grant grant);
  void abandon(Attempt& attempt, TaskEnd how, const std::string& reason);
  void let_go(Attempt& attempt, ExitReport exit);
  void end(Attempt& attempt, ExitReport exit);

  const NodeLimits limits_;
  DataPlane& data_;
  TaskRunner& runner_;
  const Clock& clock_;
  Report report_;
  CpuAllocator cpus_;
  Attempts attempts_;
  UnitShares shares_;
  std::optional<std::string> closed_;  // the reason
  bool cannot_start_ = false;          // the last one, for a reason of the node's; said once
  uint64_t next_arrival_ = 1;
  uint64_t next_ending_ = 1;
  int64_t lease_deadline_ns_ = 0;
  std::map<Attempt::ReadyPlace, AttemptId> ready_;
  // Callbacks that outlive the table find it gone.
  std::shared_ptr<TaskTable*> self_;
};

}  // namespace tierpilot::agent

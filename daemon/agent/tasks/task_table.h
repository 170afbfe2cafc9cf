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
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "daemon/agent/node/model.h"
#include "daemon/agent/tasks/cpu_allocator.h"

namespace tierpilot::agent {

// What the lifecycle needs of the dataset pool. Callbacks come on the event loop's thread, each
// exactly once, also after cancel().
class DataPlane {
 public:
  virtual ~DataPlane() = default;
  virtual void serve(AttemptId owner, const std::vector<ServeItem>& needs,
                     std::function<void(Result<Served>)> done) = 0;
  // The pending serve ends soon, with an error.
  virtual void cancel(AttemptId owner) = 0;
  // Lets go of what was served; on success commits what was written and returns it.
  virtual void finish(AttemptId owner, bool success,
                      std::function<void(Result<std::vector<ReplicaChange>>)> done) = 0;
  // The eviction bandwidth that holds now.
  virtual Result<double> evict_gb_per_s() const = 0;
  // The fast tier's own time to serve so many bytes; 0 when it was not measured.
  virtual uint64_t reference_ns(uint64_t bytes) const = 0;
};

// What an elastic attempt may compute on: any of these CPUs, and of their time so many cores'.
struct CpuShare {
  std::vector<int> cpus;
  double cores = 0;

  bool operator==(const CpuShare&) const = default;
};

// Of which several attempts have parts: a group of CPUs, or a GPU with the CPUs that feed it.
struct SharedUnit {
  std::vector<int> cpus;
  std::string gpu{};  // UUID; empty: the CPUs are what is shared
};

struct LaunchOrder {
  const Assignment& assignment;
  const std::vector<ServedItem>& datasets;
  const std::vector<int>& cpus;
  const std::string& gpu;  // UUID of the one that it has a part of; empty: of none
};

// What it needs of the executor. After a launch without error TaskTable::exited() is called once,
// and nothing of it from within launch().
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  virtual Status launch(const LaunchOrder& order) = 0;
  virtual void cancel(AttemptId attempt, const std::string& reason) = 0;
  // Or resumes it.
  virtual Status pause(AttemptId attempt, bool paused) = 0;
  // From now on, of one that has started.
  virtual void confine(AttemptId attempt, const CpuShare& share) = 0;
  // To so many thousandths of its GPU.
  virtual void confine_gpu(AttemptId attempt, uint32_t milli) = 0;
  // No attempt of the task is remembered any more.
  virtual void forget(uint64_t task) = 0;
  // The coordinator has the attempt's end for good.
  virtual void acknowledged(AttemptId attempt) = 0;
};

// Owned by the event loop's thread.
class TaskTable {
 public:
  struct Limits {
    std::vector<int> cpus;
    uint32_t units = 1;
    uint64_t memory_bytes = UINT64_MAX;
    std::vector<SharedUnit> shared_units{};  // beside `units`
    size_t max_live = 4096;                  // attempts that have not ended
    size_t max_ended = 10000;                // remembered ones; the oldest go first
  };
  using Report = std::function<void(EventBody)>;

  TaskTable(Limits limits, DataPlane& data, TaskRunner& runner, const Clock& clock, Report report);
  ~TaskTable();

  // May be repeated. Refused: what this node can never run, and an attempt older than one it knows.
  // A newer attempt of a task cancels the older one and begins when that has ended.
  Status start(Assignment assignment);
  // At which the ranks of its gang meet; 0: it is in none.
  uint16_t master_port(AttemptId attempt) const;
  // Ends the attempt wherever it is; an ended or unknown one is left alone.
  void cancel(AttemptId attempt, const std::string& reason);
  // Stops a running attempt's processes where they are, or lets them go on. Lease, time limit and
  // units count on. kNotFound when it does not run, kUnavailable without cgroups.
  Status pause(AttemptId attempt, bool paused);
  // Gives a running attempt that is elastic or has a part of a unit so many thousandths of a unit,
  // within what it asked for and what others leave; gives what it has got. kNotFound, kInvalid for
  // any other.
  Result<uint32_t> set_share(AttemptId attempt, uint32_t milli_units);
  // 0: it has units of its own that do not change, or does not run.
  uint32_t share(AttemptId attempt) const;
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

  // Not ended, or ended and not acknowledged.
  std::vector<AttemptId> live() const;
  // All whose directories must stay.
  std::set<AttemptId> held() const;
  uint32_t running_units() const { return cpus_.busy_units(); }
  size_t running_tasks() const;
  // Those with parts of units.
  std::vector<AttemptId> running_parts() const;
  // Every attempt has ended.
  bool idle() const;
  size_t remembered() const { return entries_.size(); }

 private:
  struct Entry;
  using Entries = std::map<AttemptId, std::unique_ptr<Entry>>;

  Status admissible(const Assignment& assignment) const;
  void begin_staging(Entry& entry);
  void staged(Entry& entry, Result<Served> data);
  void launch_ready();
  Entry* next_ready();
  void launch(Entry& entry, CpuAllocator::Grant grant);
  // All running elastic attempts, after units were taken or given back.
  void fit_shares();
  // Thousandths of units that elastic attempts share: all that others do not have.
  uint64_t shared_milli() const;
  void confine(Entry& entry);
  uint32_t set_part(Entry& entry, uint32_t milli);
  void confine_part(Entry& entry);
  // Of one that has a part.
  const SharedUnit& shared_unit(const Entry& entry) const;
  void abandon(Entry& entry, TaskEnd how, const std::string& reason);
  void let_go(Entry& entry, ExitReport exit);
  void end(Entry& entry, ExitReport exit);
  void begin_newer(AttemptId ended);
  void erase(AttemptId attempt);
  void forget_surplus();
  Entry* find(AttemptId attempt);
  Entry* unended_older(AttemptId attempt);
  // Wraps a member call so that it happens only while the table and the attempt exist.
  template <class Value>
  std::function<void(Value)> later(AttemptId attempt, void (TaskTable::*then)(Entry&, Value));

  Limits limits_;
  DataPlane& data_;
  TaskRunner& runner_;
  const Clock& clock_;
  Report report_;
  CpuAllocator cpus_;
  Entries entries_;
  std::optional<std::string> closed_;  // the reason
  uint64_t next_arrival_ = 1;
  uint64_t next_ending_ = 1;
  int64_t lease_deadline_ns_ = 0;
  using ReadyPlace = std::tuple<int64_t, double, uint64_t>;  // reckoning, place, arrival
  std::map<ReadyPlace, AttemptId> ready_;
  // Callbacks that outlive the table find it gone.
  std::shared_ptr<TaskTable*> self_;
};

}  // namespace tierpilot::agent

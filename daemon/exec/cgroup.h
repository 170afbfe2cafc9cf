// Task limits on cgroup v2, inside a subtree that was given to the daemon and nowhere else.
//
//   <group>/daemon       the daemon and the warden: a cgroup with controllers holds no processes
//   <group>/task-7.1     attempt 1 of task 7
//
// <group> is the daemon's own cgroup when systemd delegated it (Delegate=yes), or a configured one,
// which then belongs to this daemon alone: task cgroups found in it are a dead warden's and are
// killed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sysroot.h"
#include "daemon/exec/task.h"

namespace tierpilot {

struct LimitState {
  bool on = false;
  std::string why_not;  // when not on
};

struct LimitsReport {
  std::string cgroup;  // the group's directory; empty when there is none
  LimitState memory, cpu, cpuset, io;
  LimitState kill;  // cgroup.kill: ends a task in one step, whatever it forks
};

// What cgroup files say of one task; absent where the controller is not on.
struct CgroupFigures {
  std::optional<int64_t> cpu_user_ns, cpu_system_ns;
  std::optional<uint64_t> peak_bytes, read_bytes, written_bytes;
  bool hit_memory_limit = false;  // the task's own, not one above it
  bool oom_killed = false;
};

class TaskCgroup {
 public:
  explicit TaskCgroup(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Moves the calling (single-threaded) process in.
  Status enter() const;
  Status kill() const;
  // Takes effect when "frozen 1" stands in cgroup.events. Frozen processes can be killed.
  Status set_frozen(bool frozen) const;
  // For as long as the task runs; each where its controller is on.
  Status set_cpus(const LimitsReport& limits, const std::vector<int>& cpus) const;
  Status set_cpu_quota(double cores) const;
  CgroupFigures figures() const;
  Status remove() const;
  // By which the kernel knows it: the inode number of its directory, 0 when that is gone.
  uint64_t id() const;
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
};

class CgroupTree {
 public:
  // Never fails: what is not there is in limits(). `configured` is a path in the v2 hierarchy such
  // as "/tierpilot/n1", made when absent; "" uses the daemon's own cgroup if it was delegated, and
  // then moves the calling process, which must be the daemon before it has threads or children.
  static CgroupTree open(const Sysroot& sysroot, const std::string& configured);

  const LimitsReport& limits() const { return limits_; }
  // nullopt when there is no group.
  Result<std::optional<TaskCgroup>> create(const TaskLaunch& task) const;
  // One that create() made.
  std::optional<TaskCgroup> find(uint64_t task_id, uint32_t attempt) const;

 private:
  explicit CgroupTree(LimitsReport limits) : limits_(std::move(limits)) {}
  LimitsReport limits_;
};

}  // namespace tierpilot

// What the executor is told about a task and what it tells back: plain values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/task_end.h"

namespace tierpilot {

// As whom a task runs, where that is not the daemon's own user.
struct TaskUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups{};  // the supplementary ones
  // Nobody else on the machine is this user: all its processes, files and memory are the task's.
  bool reserved = false;
};

struct TaskLaunch {
  uint64_t task_id = 0;
  uint32_t attempt = 0;
  // Passed to execve as it is; nothing is expanded. argv[0] without '/' is looked up in the PATH of
  // `env`, and nowhere when `env` has none.
  std::vector<std::string> argv;
  // The whole environment; the daemon's own is not inherited.
  std::vector<std::pair<std::string, std::string>> env;
  // Absolute paths. The logs are <log_directory>/stdout.log and stderr.log, appended to.
  std::string working_directory, log_directory;
  // Empty: the daemon's own CPUs.
  std::vector<int> cpus;
  // NUMA nodes that its memory comes from, in turn when interleaved, as long as they have any.
  // Empty: as the kernel likes.
  std::vector<int> memory_nodes{};
  bool interleave_memory = false;
  // Enforced only where LimitsReport::memory is on.
  std::optional<uint64_t> memory_limit_bytes;
  // Beyond the limit: what it swaps out to memory counts in the same cgroup.
  uint64_t swap_memory_bytes = 0;
  // 0: none.
  int64_t time_limit_ms = 0;
  // Its success needs nothing more of the daemon, so that a report of it is worth keeping.
  bool keep_success = true;
  // Nothing: the daemon's own. Otherwise working directory and logs must be there already.
  std::optional<TaskUser> user{};
  // Files that are this user's while the task runs, and the daemon's again before its end is told.
  std::vector<std::string> given{};
  // Folders likewise, which are empty when it starts; they come back with all that is in them once
  // nothing of the task is left.
  std::vector<std::string> given_folders{};
};

struct TaskStarted {
  uint64_t task_id = 0;
  uint32_t attempt = 0;
  pid_t pid = 0;  // also the task's process group and session
  int64_t boot_ns = 0;
};

// Sent when no process of the task is left, however it was detached (or, said in `reason`, when
// some could not be killed in time). A figure that could not be measured is absent.
struct ProcessExit {
  uint64_t task_id = 0;
  uint32_t attempt = 0;
  TaskEnd how = TaskEnd::kExited;
  // Of the task's first process; one of the two when it ran and its end was seen.
  std::optional<int> exit_code, signal;
  // It could not start, or was lost, for a reason that is this machine's or its daemon's: on
  // another one it may run.
  bool node_fault = false;
  std::string reason;  // for people: "killed by signal 11 (Segmentation fault)"
  std::optional<int64_t> started_boot_ns, wall_ms;
  // All processes of the task together.
  std::optional<int64_t> cpu_user_ns, cpu_system_ns;
  // Largest resident set of any one process. Never below the supervisor's own (1 to 3 MB): Linux
  // counts the image that a process had before its execve.
  std::optional<uint64_t> max_rss_bytes;
  // Peak of the whole task with its page cache: only where the cgroup memory controller is on.
  std::optional<uint64_t> cgroup_peak_bytes;
  // Bytes that really went from and to storage.
  std::optional<uint64_t> read_bytes, written_bytes;
};

// After the exit of a task with a user of its own: what it left has been looked for.
struct TaskCleared {
  uint64_t task_id = 0;
  uint32_t attempt = 0;
  std::string left;  // what is still there, and why; empty: nothing
};

using TaskEvent = std::variant<TaskStarted, ProcessExit, TaskCleared>;

// Refuses what no machine could run: an empty command, NUL bytes, relative directories, negative
// times. kInvalid names the task and the field.
Status check(const TaskLaunch& task);

}  // namespace tierpilot

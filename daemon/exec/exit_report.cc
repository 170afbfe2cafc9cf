#include "daemon/exec/exit_report.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/bytes.h"

namespace tierpilot {
namespace {

constexpr uint64_t kRusageBlockBytes = 512;

int64_t to_ns(const timeval& time) {
  return time.tv_sec * 1'000'000'000LL + time.tv_usec * 1000LL;
}

bool oom_killed(const TaskEnding& ending) {
  return ending.cgroup && ending.cgroup->oom_killed && WTERMSIG(*ending.wait_status) == SIGKILL;
}

TaskEnd how_it_ended(const TaskEnding& ending) {
  if (!ending.start_fault.empty()) return TaskEnd::kCouldNotStart;
  if (ending.stopped) return *ending.stopped;
  if (!ending.wait_status) return TaskEnd::kLost;
  if (!WIFSIGNALED(*ending.wait_status)) return TaskEnd::kExited;
  return oom_killed(ending) && ending.cgroup->hit_memory_limit ? TaskEnd::kMemoryLimit
                                                               : TaskEnd::kSignalled;
}

std::string reason_for(const TaskLaunch& task, const TaskEnding& ending, const ProcessExit& exit) {
  switch (exit.how) {
    case TaskEnd::kExited:
      return fmt::format("exited with code {}", exit.exit_code.value_or(-1));
    case TaskEnd::kSignalled:
      return fmt::format("killed by signal {} ({}{})", *exit.signal, ::strsignal(*exit.signal),
                         oom_killed(ending) ? ": the machine ran out of memory" : "");
    case TaskEnd::kCouldNotStart:
      return fmt::format("task {}: {}", task.task_id, ending.start_fault);
    case TaskEnd::kCancelled:
      return "cancelled";
    case TaskEnd::kTimedOut:
      return fmt::format("ran longer than its limit of {} ms", task.time_limit_ms);
    case TaskEnd::kLeaseExpired:
      return "the node's lease ended";
    case TaskEnd::kMemoryLimit:
      return fmt::format("needed more than its memory limit of {}",
                         format_bytes(task.memory_limit_bytes.value_or(0)));
    case TaskEnd::kLost:
      return "its end was not seen";
    case TaskEnd::kDataFailed:  // told by the node's daemon, not by who ran it
    case TaskEnd::kUnknown:
      break;
  }
  return {};
}

void add_usage(const TaskEnding& ending, ProcessExit& exit) {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  exit.cpu_user_ns = to_ns(usage.ru_utime);
  exit.cpu_system_ns = to_ns(usage.ru_stime);
  exit.max_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  // The block counts stay zero in kernels without I/O accounting, which also have no such file.
  if (::access("/proc/self/io", F_OK) == 0) {
    exit.read_bytes = static_cast<uint64_t>(usage.ru_inblock) * kRusageBlockBytes;
    exit.written_bytes = static_cast<uint64_t>(usage.ru_oublock) * kRusageBlockBytes;
  }
  if (!ending.cgroup) return;
  // A cgroup also sees processes that nobody waited for.
  const CgroupFigures& figures = *ending.cgroup;
  if (figures.cpu_user_ns) exit.cpu_user_ns = figures.cpu_user_ns;
  if (figures.cpu_system_ns) exit.cpu_system_ns = figures.cpu_system_ns;
  if (figures.read_bytes) exit.read_bytes = figures.read_bytes;
  if (figures.written_bytes) exit.written_bytes = figures.written_bytes;
  exit.cgroup_peak_bytes = figures.peak_bytes;
}

}  // namespace

ProcessExit exit_report(const TaskLaunch& task, const TaskEnding& ending) {
  ProcessExit exit{.task_id = task.task_id, .attempt = task.attempt, .how = how_it_ended(ending)};
  exit.node_fault = exit.how == TaskEnd::kCouldNotStart && !ending.start_fault_is_its_own;
  if (exit.how != TaskEnd::kCouldNotStart) {
    if (ending.wait_status && WIFEXITED(*ending.wait_status))
      exit.exit_code = WEXITSTATUS(*ending.wait_status);
    if (ending.wait_status && WIFSIGNALED(*ending.wait_status))
      exit.signal = WTERMSIG(*ending.wait_status);
    exit.started_boot_ns = ending.started_boot_ns;
    exit.wall_ms = (ending.ended_boot_ns - ending.started_boot_ns) / 1'000'000;
    add_usage(ending, exit);
  }
  exit.reason = reason_for(task, ending, exit);
  if (ending.unkilled > 0)
    exit.reason += fmt::format("; {} of its processes could not be killed yet", ending.unkilled);
  return exit;
}

}  // namespace tierpilot

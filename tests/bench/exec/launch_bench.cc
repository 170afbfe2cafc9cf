// Launch to exit of /bin/true through the executor, one at a time and as a burst, beside its floor
// on this machine: posix_spawn and waitpid in the same run, turn by turn.
//
//   launch_bench [cgroup]     with a cgroup v2 path such as /tierpilot-bench: tasks run in cgroups
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "base/histogram.h"
#include "daemon/exec/executor.h"

using namespace tierpilot;

namespace {

constexpr uint64_t kTasks = 500;

int64_t now_ns() {
  return system_clock().boot_ns();
}

bool spawn_and_wait() {
  char program[] = "/bin/true";
  char* argv[] = {program, nullptr};
  pid_t pid = 0;
  return ::posix_spawn(&pid, program, nullptr, nullptr, argv, nullptr) == 0 &&
         ::waitpid(pid, nullptr, 0) == pid;
}

bool launch(Executor& executor, uint64_t id, const std::string& directory) {
  const auto status = executor.launch({.task_id = id,
                                       .attempt = 1,
                                       .argv = {"/bin/true"},
                                       .working_directory = "/",
                                       .log_directory = directory});
  if (!status) fmt::print(stderr, "{}\n", status.error().message);
  return status.has_value();
}

bool wait_exits(Executor& executor, size_t count) {
  while (count > 0) {
    pollfd wait{executor.event_fd(), POLLIN, 0};
    if (::poll(&wait, 1, 10'000) <= 0) return false;
    for (const auto& event : executor.poll()) {
      const auto* exit = std::get_if<ProcessExit>(&event);
      if (exit && exit->exit_code != 0) return false;
      if (exit) --count;
    }
  }
  return true;
}

void print(const char* what, const Histogram& latency_ns) {
  fmt::print("{:34} p50 {:8.1f} us   p99 {:8.1f} us   ({} runs)\n", what,
             latency_ns.quantile(0.5) / 1000, latency_ns.quantile(0.99) / 1000, latency_ns.count());
}

bool run(Executor& executor, const std::string& directory) {
  Histogram spawned_ns, launched_ns;
  for (uint64_t id = 1; id <= kTasks; ++id) {
    const int64_t start = now_ns();
    if (!spawn_and_wait()) return false;
    const int64_t middle = now_ns();
    if (!launch(executor, id, directory) || !wait_exits(executor, 1)) return false;
    spawned_ns.add(static_cast<uint64_t>(middle - start));
    launched_ns.add(static_cast<uint64_t>(now_ns() - middle));
  }
  print("posix_spawn + waitpid (floor)", spawned_ns);
  print("executor launch to exit", launched_ns);
  const int64_t start = now_ns();
  for (uint64_t id = 1; id <= kTasks; ++id) {
    if (!launch(executor, kTasks + id, directory)) return false;
  }
  if (!wait_exits(executor, kTasks)) return false;
  fmt::print("{:34} {:.0f} tasks a second\n", fmt::format("executor, burst of {}", kTasks),
             static_cast<double>(kTasks) * 1e9 / static_cast<double>(now_ns() - start));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::string directory =
      (std::filesystem::temp_directory_path() / "tierpilot-launch-XXXXXX").string();
  if (!::mkdtemp(directory.data())) return 1;
  bool ok = false;
  {
    auto executor = Executor::start({.cgroup = argc > 1 ? argv[1] : ""});
    if (!executor) {
      fmt::print(stderr, "{}\n", executor.error().message);
      return 1;
    }
    fmt::print("cgroups: {}\n", (*executor)->limits().kill.on ? (*executor)->limits().cgroup
                                                              : (*executor)->limits().kill.why_not);
    ok = (*executor)->extend_lease(now_ns() + 600'000'000'000, now_ns()) &&
         run(**executor, directory);
  }
  std::filesystem::remove_all(directory);
  return ok ? 0 : 1;
}

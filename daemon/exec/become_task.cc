#include "daemon/exec/become_task.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>

#include "base/sysroot.h"
#include "base/unique_fd.h"
#include "daemon/exec/memory_policy.h"
#include "daemon/exec/users/belongings.h"
#include "daemon/exec/users/task_user.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxCpus = 65536;

// The kernel forgets who dies with whom when the user changes.
Status die_with(pid_t supervisor) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) return fail_errno(errno, "PR_SET_PDEATHSIG");
  // The supervisor may have died before the request above.
  if (::getppid() != supervisor) ::_exit(127);
  return {};
}

Status enter_session(pid_t supervisor) {
  if (::setsid() < 0) return fail_errno(errno, "setsid");
  return die_with(supervisor);
}

Status bind_to_cpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return {};
  const int last = *std::max_element(cpus.begin(), cpus.end());
  std::vector<cpu_set_t> mask(static_cast<size_t>(last) / CPU_SETSIZE + 1);
  const size_t size = mask.size() * sizeof(cpu_set_t);
  for (const int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), size, mask.data());
  const std::string what = fmt::format("cannot run on CPUs {}", format_id_list(cpus));
  if (::sched_setaffinity(0, size, mask.data()) < 0) return fail_errno(errno, what);
  // The kernel silently drops CPUs that are offline or outside of the daemon's cpuset.
  std::vector<cpu_set_t> got(kMaxCpus / CPU_SETSIZE);
  const size_t got_size = got.size() * sizeof(cpu_set_t);
  if (::sched_getaffinity(0, got_size, got.data()) < 0) return fail_errno(errno, what);
  if (CPU_COUNT_S(got_size, got.data()) != static_cast<int>(cpus.size()))
    return fail(ErrorCode::kUnavailable,
                what + ": some of them are offline or not allowed to this daemon");
  return {};
}

// True for task_root itself and what lies below it, as written (links are not followed).
bool below(const std::string& directory, const std::string& root) {
  if (root.empty()) return false;
  const auto relative = fs::path(directory).lexically_normal().lexically_relative(root);
  return !relative.empty() && *relative.begin() != "..";
}

Status make_directory(const std::string& directory, const std::string& root) {
  if (!below(directory, root)) return {};
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return fail_errno(error.value(), fmt::format("cannot create '{}'", directory));
  return {};
}

Status replace_stream(int stream, const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0640));
  if (!fd || ::dup2(fd.get(), stream) < 0)
    return fail_errno(errno, fmt::format("cannot open '{}'", path));
  return {};
}

Status open_streams(const TaskLaunch& task, const std::string& root) {
  constexpr int kLog = O_WRONLY | O_CREAT | O_APPEND;
  return make_directory(task.log_directory, root)
      .and_then([&] { return replace_stream(STDIN_FILENO, "/dev/null", O_RDONLY); })
      .and_then(
          [&] { return replace_stream(STDOUT_FILENO, task.log_directory + "/stdout.log", kLog); })
      .and_then(
          [&] { return replace_stream(STDERR_FILENO, task.log_directory + "/stderr.log", kLog); });
}

// Preferences, not promises: a kernel or sandbox may refuse them, and the task runs all the same.
void set_preferences(const ExecutorOptions& options) {
  ::setpriority(PRIO_PROCESS, 0, options.task_nice);
  const std::string score = std::to_string(options.task_oom_score_adj);
  UniqueFd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file) (void)!::write(file.get(), score.data(), score.size());
}

Status limit_core(uint64_t bytes) {
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_CORE, &limit) < 0) return fail_errno(errno, "RLIMIT_CORE");
  return {};
}

Status limit_descriptors(uint64_t soft) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(soft, limit.rlim_max);
  if (soft > 0 && ::setrlimit(RLIMIT_NOFILE, &limit) < 0) return fail_errno(errno, "RLIMIT_NOFILE");
  return {};
}

// The daemon may hold CAP_BPF and others, or be root: the task keeps none and can regain none.
Status drop_privileges(const TaskLaunch& task, pid_t supervisor) {
  Status done = bound_privileges();
  if (done && task.user)
    done = hand_over(task).and_then([&] { return become_user(*task.user); }).and_then([&] {
      return die_with(supervisor);
    });
  return done.and_then([] { return give_up_all_privileges(); });
}

Status enter_directory(const TaskLaunch& task, const std::string& root) {
  return make_directory(task.working_directory, root).and_then([&]() -> Status {
    if (::chdir(task.working_directory.c_str()) == 0) return {};
    return fail_errno(errno, fmt::format("cannot enter directory '{}'", task.working_directory));
  });
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// execvp would search the daemon's PATH and hand a file of unknown format to a shell.
std::vector<std::string> candidates(const TaskLaunch& task) {
  const std::string& name = task.argv[0];
  if (name.find('/') != std::string::npos) return {name};
  const auto path = std::find_if(task.env.begin(), task.env.end(),
                                 [](const auto& entry) { return entry.first == "PATH"; });
  if (path == task.env.end()) return {};
  std::vector<std::string> files;
  std::istringstream directories(path->second);
  for (std::string directory; std::getline(directories, directory, ':');)
    files.push_back((directory.empty() ? "." : directory) + "/" + name);
  return files;
}

// A program that is missing or forbidden is the task's own affair; these say that the machine has
// run out of something, or cannot read its disk.
bool is_of_the_machine(int err) {
  constexpr int kScarce[] = {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOSPC, EDQUOT, EIO, ESTALE, ENOLINK};
  return std::find(std::begin(kScarce), std::end(kScarce), err) != std::end(kScarce);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

StartFault run_program(const TaskLaunch& task) {
  auto arguments = task.argv;
  std::vector<std::string> environment;
  for (const auto& [name, value] : task.env) environment.push_back(name + "=" + value);
  const auto argv = pointers(arguments), envp = pointers(environment);
  const auto files = candidates(task);
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  int worst = ENOENT;
  std::string hint = files.empty() ? " (its environment has no PATH)" : "";
  for (const auto& file : files) {
    ::execve(file.c_str(), argv.data(), envp.data());
    if (errno == ENOENT && ::access(file.c_str(), F_OK) == 0)
      hint = " (the file is there: its interpreter is missing)";
    if (errno != ENOENT && errno != ENOTDIR) worst = errno;
  }
  Error error = fail_errno(worst, fmt::format("cannot run '{}'", task.argv[0])).value();
  error.message += hint;
  return {std::move(error), !is_of_the_machine(worst)};
}

}  // namespace

StartFault become_task(const TaskLaunch& task, const std::optional<TaskCgroup>& cgroup,
                       const ExecutorOptions& options, pid_t supervisor) {
  set_preferences(options);
  const Status ready =
      enter_session(supervisor)
          .and_then([&] { return cgroup ? cgroup->enter() : Status{}; })
          .and_then([&] { return bind_to_cpus(task.cpus); })
          .and_then([&] { return set_memory_policy(task.memory_nodes, task.interleave_memory); })
          .and_then([&] { return open_streams(task, options.task_root); })
          .and_then([&] { return limit_core(options.core_limit_bytes); })
          .and_then([&] { return limit_descriptors(options.task_descriptors); })
          .and_then([&] { return drop_privileges(task, supervisor); })
          .and_then([&] { return enter_directory(task, options.task_root); });
  if (!ready) return {ready.error(), false};
  reset_signals();
  return run_program(task);
}

}  // namespace tierpilot

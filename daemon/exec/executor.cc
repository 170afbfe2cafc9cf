#include "daemon/exec/executor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/files/tree_removal.h"
#include "daemon/exec/exit_records.h"
#include "daemon/exec/hardware_clock.h"
#include "daemon/exec/users/belongings.h"
#include "daemon/exec/users/clear_user.h"
#include "daemon/exec/users/task_user.h"
#include "daemon/exec/warden/warden.h"
#include "model/attempt.h"

namespace tierpilot {
namespace {

// ThreadSanitizer runs a thread of its own.
#ifdef __SANITIZE_THREAD__
constexpr size_t kThreadsAtStart = 2;
#else
constexpr size_t kThreadsAtStart = 1;
#endif

Status watch(const UniqueFd& events, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (::epoll_ctl(events.get(), EPOLL_CTL_ADD, fd, &event) < 0)
    return fail_errno(errno, "executor: epoll");
  return {};
}

// No signal may reach the child before it has blocked them all.
template <class Child>
pid_t fork_with_signals_blocked(Child child) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) child();
  const int err = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = err;
  return pid;
}

bool is_own_folder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

// What tasks still have that were killed together with warden and supervisors; gives the users of
// whom something stays. Holds the lock: none of them has a supervisor any more. Tasks that ran as
// the daemon's user may have written what is found here.
std::set<uid_t> clear_leftovers(const ExecutorOptions& options) {
  // Of what the service manager gives a start.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::set<uid_t> uncleared;
  for (const auto& name : Sysroot().list(options.task_root)) {
    const auto directory = options.task_root + "/" + name;
    auto user = is_own_folder(directory) ? user_left(directory) : std::nullopt;
    if (!user || user->uid < options.lowest_user || user->uid == ::geteuid()) continue;
    user->reserved = user->reserved && options.reserves(user->uid);
    if (std::chrono::steady_clock::now() > deadline) {
      spdlog::warn("{}: what user {} had of it is left to the next start", directory, user->uid);
      uncleared.insert(user->uid);
      continue;
    }
    TaskLaunch task;
    task.working_directory = directory + "/" + kWorkFolder;
    task.log_directory = directory;
    task.user = user;
    const auto left = clear_task(task);
    if (left.empty()) {
      spdlog::info("{}: what user {} had of it is taken back", directory, user->uid);
      continue;
    }
    spdlog::warn("{}: {}", directory, left);
    uncleared.insert(user->uid);
  }
  return uncleared;
}

// Or was, and is being removed.
bool is_of_an_attempt(std::string_view folder) {
  while (folder.starts_with(kRemovedPrefix)) folder.remove_prefix(kRemovedPrefix.size());
  return parse_attempt(folder).has_value();
}

// With what is in them, whoever's it is. Holds the lock, as above.
void remove_leftover_folders(const ExecutorOptions& options) {
  for (const auto& root : options.folder_roots) {
    if (!is_own_folder(root)) {
      spdlog::warn("folder '{}' is not the daemon's own: nothing in it is removed", root);
      continue;
    }
    for (const auto& name : Sysroot().list(root)) {
      const auto folder = root + "/" + name;
      struct stat info {};
      if (!is_of_an_attempt(name) || ::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
        continue;
      if (info.st_uid != ::geteuid() && info.st_uid < options.lowest_user) continue;  // no task's
      const bool reserved = options.reserves(info.st_uid);
      if (auto taken =
              take_over_tree(folder, info.st_uid, {.all_folders = true, .linked_files = reserved});
          !taken)
        spdlog::warn("{}", taken.error().message);
      if (const int error = remove_tree(folder, [] { return true; }))
        spdlog::warn("{}: left by an earlier daemon, cannot be removed: {}", folder,
                     std::strerror(error));
      else
        spdlog::info("{}: left by an earlier daemon, is removed", folder);
    }
  }
}

}  // namespace

Result<std::unique_ptr<Executor>> Executor::start(ExecutorOptions options) {
  if (Sysroot().list("/proc/self/task").size() > kThreadsAtStart)
    return fail(ErrorCode::kConflict, "executor: must be started before the process has threads");
  Lifeline lifeline;
  if (!options.task_root.empty()) {
    auto lock = lock_task_root(options.task_root, options.start_patience_ms);
    if (!lock) return tl::unexpected(lock.error());
    lifeline.locks.push_back(std::move(*lock));
  }
  for (const auto& root : options.folder_roots) {
    if (!is_own_folder(root)) continue;  // and nothing in it is touched
    auto lock = lock_folder_root(root, options.task_root, options.start_patience_ms);
    if (!lock) return tl::unexpected(lock.error());
    lifeline.locks.push_back(std::move(*lock));
  }
  std::set<uid_t> uncleared;
  if (options.other_users) {
    if (const auto missing = missing_user_privileges(); !missing.empty())
      return fail(ErrorCode::kDenied,
                  "tasks cannot run as other users (tasks.run_as): this process lacks" + missing);
    uncleared = clear_leftovers(options);
  }
  remove_leftover_folders(options);
  auto sockets = MessageSocket::socket_pair();
  if (!sockets) return tl::unexpected(sockets.error());
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno(errno, "executor: pipe");
  UniqueFd lifeline_end(pipe[0]);
  lifeline.pipe.reset(pipe[1]);
  UniqueFd events(::epoll_create1(EPOLL_CLOEXEC));
  if (!events) return fail_errno(errno, "executor: epoll");
  for (const int fd : {sockets->first.get(), lifeline_end.get()}) {
    if (auto status = watch(events, fd); !status) return tl::unexpected(status.error());
  }
  const auto cgroups = CgroupTree::open(options.sysroot, options.cgroup);
  const auto hardware_clock = HardwareClock::find(options.sysroot);
  const pid_t daemon = ::getpid();
  const pid_t warden = fork_with_signals_blocked([&] {
    auto with_limits = options;
    with_limits.task_descriptors = descriptor_limit();
    raise_descriptor_limit();  // there is a socket for each task
    run_warden(with_limits, cgroups, hardware_clock ? &*hardware_clock : nullptr,
               std::move(sockets->second), std::move(lifeline), daemon);
  });
  if (warden < 0) return fail_errno(errno, "executor: fork");
  // Also where tasks have no users of their own, but the unit would let them.
  if (options.other_users || ::geteuid() != 0)
    if (auto status = give_up_user_privileges(); !status) return tl::unexpected(status.error());
  std::unique_ptr<Executor> executor(new Executor(
      MessageSocket(std::move(sockets->first)), std::move(lifeline_end), std::move(events), warden,
      cgroups, hardware_clock ? "" : hardware_clock.error().message));
  executor->task_root_ = options.task_root;
  executor->uncleared_users_ = std::move(uncleared);
  return executor;
}

Executor::Executor(MessageSocket channel, UniqueFd lifeline, UniqueFd events, pid_t warden,
                   CgroupTree cgroups, std::string why_pauses_pass_unnoticed)
    : cgroups_(std::move(cgroups)),
      why_pauses_pass_unnoticed_(std::move(why_pauses_pass_unnoticed)),
      warden_(std::move(channel), std::move(lifeline), std::move(events), warden) {}

Status Executor::launch(const TaskLaunch& task) {
  if (auto status = check(task); !status) return status;
  if (auto status = attempts_.check_new(task.task_id, task.attempt); !status) return status;
  if (system_clock().boot_ns() >= lease_deadline_boot_ns_)
    return fail(ErrorCode::kUnavailable,
                fmt::format("task {}: the node holds no lease", task.task_id));
  if (auto status = warden_.send(task, false); !status)
    return fail(status.error().code,
                fmt::format("task {}: {}", task.task_id, status.error().message));
  attempts_.launched(task.task_id, task.attempt);
  return {};
}

Status Executor::cancel(uint64_t task_id, uint32_t attempt, int64_t grace_ms) {
  if (auto status = attempts_.check_running(task_id, attempt); !status) return status;
  return warden_.send(StopTask{task_id, attempt, grace_ms, TaskEnd::kCancelled}, false);
}

Status Executor::set_frozen(uint64_t task_id, uint32_t attempt, bool frozen) {
  if (auto status = attempts_.check_running(task_id, attempt); !status) return status;
  const auto cgroup = cgroups_.find(task_id, attempt);
  if (!cgroup)
    return fail(ErrorCode::kUnavailable,
                fmt::format("task {} cannot be frozen: {}", task_id, limits().kill.why_not));
  return cgroup->set_frozen(frozen);
}

void Executor::stand_still(uint64_t task_id, uint32_t attempt, bool still) {
  if (attempts_.check_running(task_id, attempt))
    (void)warden_.send(StandStill{task_id, attempt, still}, false);
}

void Executor::open_file(uint64_t task_id, uint32_t attempt, const std::string& path, Opened done) {
  const uint64_t request = requests_.add(task_id, std::move(done));
  auto asked = attempts_.check_running(task_id, attempt).and_then([&] {
    return warden_.send(OpenFile{task_id, attempt, request, path}, false);
  });
  if (!asked) requests_.refuse(request, asked.error());
}

Status Executor::confine(uint64_t task_id, uint32_t attempt, const std::vector<int>& cpus,
                         double cores) {
  if (auto status = attempts_.check_running(task_id, attempt); !status) return status;
  const auto cgroup = cgroups_.find(task_id, attempt);
  if (!cgroup || !limits().cpu.on)
    return fail(ErrorCode::kUnavailable, "no CPU quota: " + limits().cpu.why_not);
  if (auto status = cgroup->set_cpus(limits(), cpus); !status) return status;
  return cgroup->set_cpu_quota(cores);
}

Status Executor::extend_lease(int64_t deadline_boot_ns, int64_t asked_boot_ns) {
  auto status = warden_.send(LeaseExtension{deadline_boot_ns, asked_boot_ns}, true);
  if (status) lease_deadline_boot_ns_ = std::max(lease_deadline_boot_ns_, deadline_boot_ns);
  return status;
}

void Executor::forget(uint64_t task_id) {
  attempts_.forget(task_id);
}

std::vector<TaskEvent> Executor::poll() {
  std::vector<TaskEvent> told;
  if (warden_.alive()) {
    warden_.flush();
    receive(told);
  }
  if (warden_.alive())
    warden_.watch_backlog();
  else if (warden_.take_end())
    report_lost(told);
  return told;
}

void Executor::receive(std::vector<TaskEvent>& told) {
  for (;;) {
    UniqueFd attached;
    auto message = warden_.receive(attached);
    if (!message && message.error().code == ErrorCode::kUnreachable) {
      spdlog::critical("executor: the warden process {} is dead, its tasks are being killed",
                       warden_.warden());
      return requests_.end(0);
    }
    if (!message) {
      spdlog::error("{}", message.error().message);
      continue;
    }
    if (!*message) return;
    if (const auto* started = std::get_if<TaskStarted>(&**message)) told.emplace_back(*started);
    if (const auto* answer = std::get_if<FileOpened>(&**message))
      requests_.answer(*answer, std::move(attached));
    if (auto* cleared = std::get_if<TaskCleared>(&**message))
      told.emplace_back(std::move(*cleared));
    if (auto* exit = std::get_if<ProcessExit>(&**message)) {
      requests_.end(exit->task_id);
      attempts_.ended(exit->task_id);
      told.emplace_back(as_kept(std::move(*exit)));
    }
  }
}

void Executor::report_lost(std::vector<TaskEvent>& told) {
  for (const auto& [task_id, attempt] : attempts_.end_all())
    told.emplace_back(as_kept({.task_id = task_id,
                               .attempt = attempt,
                               .how = TaskEnd::kLost,
                               .node_fault = true,
                               .reason = "the warden died, which ends its tasks; how far this one "
                                         "got is unknown"}));
}

// Its supervisor may have died between writing its end down and telling it.
ProcessExit Executor::as_kept(ProcessExit exit) const {
  if (exit.how != TaskEnd::kLost || task_root_.empty()) return exit;
  auto kept = kept_exit(task_root_, exit.task_id, exit.attempt);
  return kept ? std::move(*kept) : std::move(exit);
}

}  // namespace tierpilot

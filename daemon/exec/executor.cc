#include "daemon/exec/executor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "base/clock.h"
#include "daemon/exec/hardware_clock.h"
#include "daemon/exec/process.h"
#include "daemon/exec/users/belongings.h"
#include "daemon/exec/users/clear_user.h"
#include "daemon/exec/users/task_user.h"
#include "daemon/exec/warden.h"

namespace tierpilot {
namespace {

// ThreadSanitizer runs a thread of its own.
#ifdef __SANITIZE_THREAD__
constexpr size_t kThreadsAtStart = 2;
#else
constexpr size_t kThreadsAtStart = 1;
#endif

constexpr int kEndPatienceMs = 15'000;

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
  std::set<uid_t> uncleared;
  for (const auto& name : Sysroot().list(options.task_root)) {
    const auto directory = options.task_root + "/" + name;
    auto user = is_own_folder(directory) ? user_left(directory) : std::nullopt;
    if (!user || user->uid < options.lowest_user || user->uid == ::geteuid()) continue;
    user->reserved = user->reserved && options.reserves(user->uid);
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

}  // namespace

Result<std::unique_ptr<Executor>> Executor::start(ExecutorOptions options) {
  if (Sysroot().list("/proc/self/task").size() > kThreadsAtStart)
    return fail(ErrorCode::kConflict, "executor: must be started before the process has threads");
  Lifeline lifeline;
  if (!options.task_root.empty()) {
    auto lock = lock_task_root(options.task_root, options.start_patience_ms);
    if (!lock) return tl::unexpected(lock.error());
    lifeline.lock = std::move(*lock);
  }
  std::set<uid_t> uncleared;
  if (options.other_users) {
    if (const auto missing = missing_user_privileges(); !missing.empty())
      return fail(ErrorCode::kDenied,
                  "tasks cannot run as other users (tasks.run_as): this process lacks" + missing);
    uncleared = clear_leftovers(options);
  }
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
    run_warden(options, cgroups, hardware_clock ? &*hardware_clock : nullptr,
               std::move(sockets->second), std::move(lifeline), daemon);
  });
  if (warden < 0) return fail_errno(errno, "executor: fork");
  // Also where tasks have no users of their own, but the unit would let them.
  if (options.other_users || ::geteuid() != 0)
    if (auto status = give_up_user_privileges(); !status) return tl::unexpected(status.error());
  std::unique_ptr<Executor> executor(new Executor(
      MessageSocket(std::move(sockets->first)), std::move(lifeline_end), std::move(events), warden,
      cgroups, hardware_clock ? "" : hardware_clock.error().message));
  executor->uncleared_users_ = std::move(uncleared);
  return executor;
}

Executor::Executor(MessageSocket channel, UniqueFd lifeline, UniqueFd events, pid_t warden,
                   CgroupTree cgroups, std::string why_pauses_pass_unnoticed)
    : channel_(std::move(channel)),
      lifeline_(std::move(lifeline)),
      events_(std::move(events)),
      warden_(warden),
      cgroups_(std::move(cgroups)),
      why_pauses_pass_unnoticed_(std::move(why_pauses_pass_unnoticed)) {}

Executor::~Executor() {
  channel_.close();
  const bool gone = !lifeline_ || wait_readable(lifeline_.get(), kEndPatienceMs);
  if (!gone) spdlog::error("executor: processes of tasks are stuck in the kernel, leaving them");
  ::waitpid(warden_, nullptr, gone ? 0 : WNOHANG);
}

Status Executor::launch(const TaskLaunch& task) {
  if (auto status = check(task); !status) return status;
  const auto known = launched_.find(task.task_id);
  if (known != launched_.end() && known->second.running)
    return fail(ErrorCode::kConflict, fmt::format("task {}: attempt {} has not ended", task.task_id,
                                                  known->second.attempt));
  if (known != launched_.end() && task.attempt <= known->second.attempt)
    return fail(ErrorCode::kConflict, fmt::format("task {}: attempt {} was launched already",
                                                  task.task_id, known->second.attempt));
  if (system_clock().boot_ns() >= lease_deadline_boot_ns_)
    return fail(ErrorCode::kUnavailable,
                fmt::format("task {}: the node holds no lease", task.task_id));
  if (auto status = send(task, false); !status)
    return fail(status.error().code,
                fmt::format("task {}: {}", task.task_id, status.error().message));
  launched_[task.task_id] = {task.attempt, true};
  return {};
}

Status Executor::check_running(uint64_t task_id, uint32_t attempt) const {
  const auto known = launched_.find(task_id);
  if (known != launched_.end() && known->second.running && known->second.attempt == attempt)
    return {};
  return fail(ErrorCode::kNotFound,
              fmt::format("task {}: attempt {} does not run here", task_id, attempt));
}

Status Executor::cancel(uint64_t task_id, uint32_t attempt, int64_t grace_ms) {
  if (auto status = check_running(task_id, attempt); !status) return status;
  return send(StopTask{task_id, attempt, grace_ms, TaskEnd::kCancelled}, false);
}

Status Executor::set_frozen(uint64_t task_id, uint32_t attempt, bool frozen) {
  if (auto status = check_running(task_id, attempt); !status) return status;
  const auto cgroup = cgroups_.find(task_id, attempt);
  if (!cgroup)
    return fail(ErrorCode::kUnavailable,
                fmt::format("task {} cannot be frozen: {}", task_id, limits().kill.why_not));
  return cgroup->set_frozen(frozen);
}

void Executor::stand_still(uint64_t task_id, uint32_t attempt, bool still) {
  if (check_running(task_id, attempt)) (void)send(StandStill{task_id, attempt, still}, false);
}

void Executor::open_file(uint64_t task_id, uint32_t attempt, const std::string& path, Opened done) {
  const uint64_t request = next_request_++;
  auto asked = check_running(task_id, attempt).and_then([&] {
    return send(OpenFile{task_id, attempt, request, path}, false);
  });
  if (asked)
    requests_[request] = {task_id, std::move(done)};
  else
    done(tl::unexpected(asked.error()));
}

void Executor::opened(const FileOpened& answer, UniqueFd file) {
  auto request = requests_.extract(answer.request);
  if (!request) return;
  if (!answer.fault.empty() || !file) return request.mapped().done(fail(answer.code, answer.fault));
  request.mapped().done(std::move(file));
}

void Executor::end_requests(uint64_t task_id) {
  std::vector<Opened> ended;
  std::erase_if(requests_, [&](auto& item) {
    if (task_id != 0 && item.second.task_id != task_id) return false;
    ended.push_back(std::move(item.second.done));
    return true;
  });
  for (const auto& done : ended) done(fail(ErrorCode::kUnreachable, "its task has ended"));
}

Status Executor::confine(uint64_t task_id, uint32_t attempt, const std::vector<int>& cpus,
                         double cores) {
  if (auto status = check_running(task_id, attempt); !status) return status;
  const auto cgroup = cgroups_.find(task_id, attempt);
  if (!cgroup || !limits().cpu.on)
    return fail(ErrorCode::kUnavailable, "no CPU quota: " + limits().cpu.why_not);
  if (auto status = cgroup->set_cpus(limits(), cpus); !status) return status;
  return cgroup->set_cpu_quota(cores);
}

Status Executor::extend_lease(int64_t deadline_boot_ns, int64_t asked_boot_ns) {
  auto status = send(LeaseExtension{deadline_boot_ns, asked_boot_ns}, true);
  if (status) lease_deadline_boot_ns_ = std::max(lease_deadline_boot_ns_, deadline_boot_ns);
  return status;
}

void Executor::forget(uint64_t task_id) {
  const auto known = launched_.find(task_id);
  if (known != launched_.end() && !known->second.running) launched_.erase(known);
}

Status Executor::send(const ExecMessage& message, bool urgent) {
  if (!warden_alive())
    return fail(ErrorCode::kUnavailable,
                "the warden process is dead: the daemon must be restarted");
  auto status = channel_.send(message, urgent);
  watch_channel();
  return status;
}

void Executor::watch_channel() {
  const uint32_t wanted = channel_.backlog() ? EPOLLIN | EPOLLOUT : EPOLLIN;
  epoll_event event{.events = wanted, .data = {.fd = channel_.fd()}};
  ::epoll_ctl(events_.get(), EPOLL_CTL_MOD, channel_.fd(), &event);
}

std::vector<TaskEvent> Executor::poll() {
  std::vector<TaskEvent> told;
  if (warden_alive()) {
    // A failure shows again, and for good, when what the warden sent has been read.
    (void)channel_.flush();
    receive(told);
  }
  if (warden_alive())
    watch_channel();
  else if (lifeline_ && wait_readable(lifeline_.get(), 0))
    report_lost(told);
  return told;
}

void Executor::receive(std::vector<TaskEvent>& told) {
  for (;;) {
    UniqueFd attached;
    auto message = channel_.receive(&attached);
    if (!message && message.error().code == ErrorCode::kUnreachable) return lose_warden();
    if (!message) {
      spdlog::error("{}", message.error().message);
      continue;
    }
    if (!*message) return;
    if (const auto* started = std::get_if<TaskStarted>(&**message)) told.emplace_back(*started);
    if (const auto* answer = std::get_if<FileOpened>(&**message))
      opened(*answer, std::move(attached));
    if (auto* cleared = std::get_if<TaskCleared>(&**message))
      told.emplace_back(std::move(*cleared));
    if (auto* exit = std::get_if<ProcessExit>(&**message)) {
      end_requests(exit->task_id);
      const auto known = launched_.find(exit->task_id);
      if (known != launched_.end()) known->second.running = false;
      told.emplace_back(std::move(*exit));
    }
  }
}

// Closing also takes the socket out of the epoll set; the lifeline stays in it.
void Executor::lose_warden() {
  spdlog::critical("executor: the warden process {} is dead, its tasks are being killed", warden_);
  channel_.close();
  end_requests(0);
}

// Only now is it sure that no supervisor, and so no process of a task, is left.
void Executor::report_lost(std::vector<TaskEvent>& told) {
  lifeline_.reset();
  for (auto& [task_id, latest] : launched_) {
    if (!latest.running) continue;
    latest.running = false;
    told.emplace_back(ProcessExit{.task_id = task_id,
                                  .attempt = latest.attempt,
                                  .how = TaskEnd::kLost,
                                  .node_fault = true,
                                  .reason =
                                      "the warden died, which ends its tasks; how far this one "
                                      "got is unknown"});
  }
}

}  // namespace tierpilot

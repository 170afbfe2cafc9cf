#include "daemon/exec/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "daemon/exec/become_task.h"
#include "daemon/exec/exit_records.h"
#include "daemon/exec/exit_report.h"
#include "daemon/exec/process.h"
#include "daemon/exec/process_tree.h"
#include "daemon/exec/users/belongings.h"
#include "daemon/exec/users/clear_user.h"
#include "daemon/exec/users/task_file.h"
#include "daemon/exec/users/task_user.h"

namespace tierpilot {
namespace {

// What a complaint through the start pipe begins with.
constexpr char kItsOwn = 't', kThisMachines = 'm';
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kNever = INT64_MAX;
constexpr int64_t kSweepNs = 10 * kNsPerMs;
constexpr int64_t kLateSweepNs = 1'000 * kNsPerMs;
// Bounds the reaping between two kills: a fork bomb can end processes as fast as they are reaped.
constexpr int kReapBatch = 256;

int64_t now_ns() {
  return system_clock().boot_ns();
}

int64_t after_ms(int64_t ms) {
  const int64_t now = now_ns();
  return ms < (kNever - now) / kNsPerMs ? now + ms * kNsPerMs : kNever;
}

// Not reaped yet, it is no less ended.
bool has_ended(pid_t child) {
  siginfo_t end{};
  return ::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         end.si_pid == child;
}

class Supervisor {
 public:
  Supervisor(const TaskLaunch& task, const ExecutorOptions& options, UniqueFd warden)
      : task_(task), options_(options), warden_(std::move(warden)) {}

  void run(const CgroupTree& cgroups, UniqueFd signals);
  void report_start_fault(std::string fault);
  // Of a task that ran as another user.
  void clear();

 private:
  Status start(const CgroupTree& cgroups);
  int timeout_ms() const;
  void on_warden();
  void obey(const ExecMessage& order);
  void stand(bool still);
  void open_file(const OpenFile& asked);
  void on_start_pipe();
  void on_timers();
  void reap();
  void stop(TaskEnd how, int64_t grace_ms);
  void begin_kill();
  void kill_all();
  void report(size_t unkilled);
  void keep(const ProcessExit& exit);
  void send(const ExecMessage& message, UniqueFd attached = UniqueFd());

  const TaskLaunch& task_;
  const ExecutorOptions& options_;
  MessageSocket warden_;
  std::optional<TaskCgroup> cgroup_;
  UniqueFd start_pipe_;  // the starting process's complaint, then end of file
  pid_t main_ = 0;       // 0 when it was reaped
  TaskEnding ending_;
  int64_t time_limit_at_ = kNever, kill_at_ = kNever, sweep_at_ = kNever, give_up_at_ = kNever;
  bool childless_ = false, reported_ = false;
  std::string not_ours_;  // why the task's user must not be cleared
};

Status Supervisor::start(const CgroupTree& cgroups) {
  if (const auto& user = task_.user; user && user->reserved && has_processes(user->uid)) {
    not_ours_ = fmt::format("user {} of tasks.run_as has processes that are no task's", user->uid);
    return fail(ErrorCode::kConflict, not_ours_);
  }
  auto cgroup = cgroups.create(task_);
  if (!cgroup) return tl::unexpected(cgroup.error());
  cgroup_ = *cgroup;
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) < 0) return fail_errno(errno, "pipe");
  start_pipe_.reset(pipe[0]);
  UniqueFd complaint(pipe[1]);
  const pid_t supervisor = ::getpid();
  ending_.started_boot_ns = now_ns();
  main_ = ::fork();
  if (main_ < 0) {
    main_ = 0;
    return fail_errno(errno, "fork");
  }
  if (main_ == 0) {
    const auto fault = become_task(task_, cgroup_, options_, supervisor);
    const std::string why = (fault.its_own ? kItsOwn : kThisMachines) + fault.error.message;
    // Shorter than a pipe's buffer: one write, which cannot block.
    (void)!::write(complaint.get(), why.data(), std::min<size_t>(why.size(), PIPE_BUF));
    ::_exit(127);
  }
  if (task_.time_limit_ms > 0) time_limit_at_ = after_ms(task_.time_limit_ms);
  return {};
}

void Supervisor::run(const CgroupTree& cgroups, UniqueFd signals) {
  if (auto status = start(cgroups); !status) {
    if (cgroup_) (void)cgroup_->remove();
    return report_start_fault(status.error().message);
  }
  while (!childless_) {
    pollfd sources[] = {
        {signals.get(), POLLIN, 0}, {warden_.fd(), POLLIN, 0}, {start_pipe_.get(), POLLIN, 0}};
    ::poll(sources, std::size(sources), timeout_ms());
    signalfd_siginfo ignored;
    while (::read(signals.get(), &ignored, sizeof ignored) > 0) {
    }
    on_warden();
    on_start_pipe();
    on_timers();
    reap();
  }
  report(0);
  if (!cgroup_) return;
  if (auto status = cgroup_->remove(); !status) spdlog::warn("{}", status.error().message);
}

void Supervisor::report_start_fault(std::string fault) {
  ending_.start_fault = std::move(fault);
  report(0);
}

int Supervisor::timeout_ms() const {
  const int64_t next = std::min({time_limit_at_, kill_at_, sweep_at_, give_up_at_});
  if (next == kNever) return -1;
  const int64_t ms = std::max<int64_t>(next - now_ns(), 0) / kNsPerMs + 1;
  return static_cast<int>(std::min<int64_t>(ms, 3'600'000));
}

void Supervisor::on_warden() {
  while (warden_.fd() >= 0) {
    auto message = warden_.receive();
    if (!message) {
      warden_.close();
      return stop(TaskEnd::kLost, 0);
    }
    if (!*message) return;
    obey(**message);
  }
}

void Supervisor::obey(const ExecMessage& order) {
  if (const auto* end = std::get_if<StopTask>(&order)) stop(end->how, end->grace_ms);
  // Whoever was asked to end must be able to hear of it.
  if (const auto* stand_still = std::get_if<StandStill>(&order))
    stand(stand_still->still && !ending_.stopped);
  if (const auto* asked = std::get_if<OpenFile>(&order)) open_file(*asked);
}

// Whose parent ends while the tree is read is missed: nobody may stand still for good by that.
void Supervisor::stand(bool still) {
  constexpr int kMostLooks = 3;
  bool any_stands = true;
  for (int look = 0; look < (still ? 1 : kMostLooks) && any_stands; ++look) {
    any_stands = false;
    for (const pid_t process : descendants(::getpid())) {
      any_stands = any_stands || stands_still(process);
      ::kill(process, still ? SIGSTOP : SIGCONT);
    }
  }
}

// In a process that is the task's user, which may open what the task may, and may hang where the
// task would. It answers by itself.
void Supervisor::open_file(const OpenFile& asked) {
  const pid_t supervisor = ::getpid(), pid = ::fork();
  if (pid < 0)
    return send(FileOpened{asked.request, ErrorCode::kUnavailable, "no process is left"});
  if (pid > 0) return;
  Status ready = bound_privileges();
  if (ready && task_.user) ready = become_user(*task_.user);
  if (ready) ready = give_up_all_privileges();
  // The lock of the task root is open here, too: it must not be held when all others are dead. The
  // kernel forgets this when the user changes.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(0);
  auto file = ready ? open_task_file(task_.working_directory, asked.path)
                    : Result<UniqueFd>(tl::unexpected(ready.error()));
  FileOpened answer{.request = asked.request, .fault = {}};
  if (!file) {
    answer.code = file.error().code;
    answer.fault = file.error().message;
  }
  send(answer, file ? std::move(*file) : UniqueFd());
  ::_exit(0);
}

void Supervisor::on_start_pipe() {
  if (!start_pipe_) return;
  char text[PIPE_BUF];
  const ssize_t got = ::read(start_pipe_.get(), text, sizeof text);
  if (got < 0) return;
  if (got > 0) {
    ending_.start_fault_is_its_own = text[0] == kItsOwn;
    ending_.start_fault.assign(text + 1, static_cast<size_t>(got) - 1);
  } else
    send(TaskStarted{task_.task_id, task_.attempt, main_, ending_.started_boot_ns});
  start_pipe_.reset();
}

void Supervisor::on_timers() {
  const int64_t now = now_ns();
  if (now >= time_limit_at_) {
    time_limit_at_ = kNever;
    stop(TaskEnd::kTimedOut, options_.time_limit_grace_ms);
  }
  if (now >= kill_at_) begin_kill();
  if (now >= give_up_at_ && !reported_)
    report(children_of_self().value_or(std::vector<pid_t>(1)).size());
}

// A group is only signalled while its leader is not reaped: until then its number is not reused.
void Supervisor::reap() {
  for (int reaped = 0; reaped < kReapBatch; ++reaped) {
    siginfo_t child{};
    if (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) < 0) {
      childless_ = true;
      return;
    }
    if (child.si_pid == 0) break;
    if (child.si_pid == main_) {
      ending_.ended_boot_ns = now_ns();
      on_start_pipe();  // its last words come before its end
      begin_kill();
    }
    int status = 0;
    ::waitpid(child.si_pid, &status, 0);
    if (child.si_pid == main_) {
      ending_.wait_status = status;
      main_ = 0;
    }
  }
  if (sweep_at_ != kNever) kill_all();
}

void Supervisor::stop(TaskEnd how, int64_t grace_ms) {
  // It ended by itself; what it left is being killed.
  if (main_ == 0 || has_ended(main_)) return;
  if (!ending_.stopped) ending_.stopped = how;
  if (grace_ms <= 0) return begin_kill();
  // A process that was just forked has no group of its own yet.
  if (kill_at_ == kNever && ::kill(-main_, SIGTERM) < 0) ::kill(main_, SIGTERM);
  stand(false);
  if (cgroup_) (void)cgroup_->set_frozen(false);  // where its user paused it
  kill_at_ = std::min(kill_at_, after_ms(grace_ms));
}

void Supervisor::begin_kill() {
  time_limit_at_ = kill_at_ = kNever;
  if (give_up_at_ == kNever && !reported_) give_up_at_ = after_ms(options_.kill_patience_ms);
  kill_all();
}

// One level of a tree of detached processes per call: the children of what dies here are adopted,
// which their SIGCHLD or the sweep timer tells.
void Supervisor::kill_all() {
  sweep_at_ = now_ns() + (reported_ ? kLateSweepNs : kSweepNs);
  if (cgroup_) (void)cgroup_->kill();
  if (main_ > 0) ::kill(-main_, SIGKILL);
  // Where nobody can look, the next sweep does.
  for (const pid_t child : children_of_self().value_or(std::vector<pid_t>()))
    ::kill(child, SIGKILL);
}

void Supervisor::report(size_t unkilled) {
  if (reported_) return;
  reported_ = true;
  give_up_at_ = kNever;
  if (ending_.ended_boot_ns == 0) ending_.ended_boot_ns = now_ns();
  if (cgroup_) ending_.cgroup = cgroup_->figures();
  ending_.unkilled = unkilled;
  if (task_.user) take_back_files(task_);
  const auto exit = exit_report(task_, ending_);
  keep(exit);
  send(exit);
}

void Supervisor::clear() {
  if (!task_.user) return;
  auto left = not_ours_.empty() ? clear_task(task_) : not_ours_;
  send(TaskCleared{task_.task_id, task_.attempt, std::move(left)});
}

// Only an end that the task came to by itself: the others are its daemon's, which is gone or knows.
void Supervisor::keep(const ProcessExit& exit) {
  const bool by_itself = exit.how == TaskEnd::kExited || exit.how == TaskEnd::kSignalled ||
                         exit.how == TaskEnd::kTimedOut || exit.how == TaskEnd::kMemoryLimit;
  if (!by_itself || options_.task_root.empty()) return;
  if (exit.how == TaskEnd::kExited && exit.exit_code == 0 && !task_.keep_success) return;
  if (auto kept = keep_exit(options_.task_root, exit); !kept)
    spdlog::warn("{}: it runs again if the daemon dies before the end was acknowledged",
                 kept.error().message);
}

void Supervisor::send(const ExecMessage& message, UniqueFd attached) {
  if (!warden_.send(message, std::move(attached)))
    return;  // the warden is dead, and so is who would read it
  while (warden_.backlog()) {
    pollfd writable{warden_.fd(), POLLOUT, 0};
    ::poll(&writable, 1, -1);
    if (!warden_.flush()) return;
  }
}

}  // namespace

void supervise(const TaskLaunch& task, const ExecutorOptions& options, const CgroupTree& cgroups,
               UniqueFd warden, Lifeline lifeline) {
  const int socket = warden.get();
  Supervisor supervisor(task, options, std::move(warden));
  auto signals = become_minder(fmt::format("task {}.{}", task.task_id, task.attempt),
                               lifeline.fds_and(socket));
  if (signals)
    supervisor.run(cgroups, std::move(*signals));
  else
    supervisor.report_start_fault(signals.error().message);
  supervisor.clear();
  ::_exit(0);
}

void clear_after(const TaskLaunch& task, UniqueFd warden, Lifeline lifeline) {
  MessageSocket channel(std::move(warden));
  (void)become_minder("clears a task", lifeline.fds_and(channel.fd()));
  (void)channel.send(TaskCleared{task.task_id, task.attempt, clear_task(task)});
  ::_exit(0);
}

}  // namespace tierpilot

#include "daemon/exec/warden/warden.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>

#include "base/clock.h"
#include "daemon/exec/message_socket.h"
#include "daemon/exec/process.h"
#include "daemon/exec/supervisor.h"
#include "daemon/exec/users/task_user.h"
#include "daemon/exec/warden/lost_tasks.h"
#include "daemon/exec/warden/waiting_orders.h"

namespace tierpilot {
namespace {

// How long a task may run on after a pause of the machine, and little enough to be no load: a
// reading costs a virtual machine some 0.2 ms.
constexpr int kLookAtClockMs = 500;
constexpr int kMostReadATurn = 1'024;
constexpr int kWardenNice = -5;
constexpr std::string_view kWardenOomScore = "-900";

// A task as the warden sees it: one supervisor.
struct Supervised {
  uint64_t task_id;
  uint32_t attempt;
  MessageSocket channel;
  // What it is to be cleared of; nothing once that is told.
  std::optional<TaskLaunch> remains{};
  bool exit_reported = false;
};

std::string how_it_was_lost(int status) {
  const auto how = WIFSIGNALED(status)
                       ? fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                                     ::strsignal(WTERMSIG(status)))
                       : fmt::format("ended with {}", WEXITSTATUS(status));
  return "its supervisor " + how + ", which ends the task; how far it got is unknown";
}

// All that clearing needs, of a task with another user.
std::optional<TaskLaunch> remains_of(const TaskLaunch& task) {
  if (!task.user) return std::nullopt;
  TaskLaunch remains = task;
  remains.argv.clear();
  remains.env.clear();
  return remains;
}

class Warden {
 public:
  Warden(const ExecutorOptions& options, const CgroupTree& cgroups,
         const HardwareClock* hardware_clock, UniqueFd socket, Lifeline lifeline, pid_t daemon)
      : options_(options),
        cgroups_(cgroups),
        hardware_clock_(hardware_clock),
        daemon_channel_(std::move(socket)),
        lifeline_(std::move(lifeline)),
        daemon_(daemon) {}

  Status run();

 private:
  Status prepare();
  std::vector<pid_t> wait_for_events();
  void on_daemon();
  void obey(const ExecMessage& message);
  void launch(const TaskLaunch& task);
  void clear(const TaskLaunch& remains);
  template <class Order>
  void pass_on(const Order& order);
  void refuse(const TaskLaunch& task, std::string why);
  void stop(const StopTask& order);
  void extend_lease(const LeaseExtension& lease);
  void set_lease_timer() const;
  void expire_lease();
  int poll_timeout_ms() const;
  void look_at_clock();
  void relay(Supervised& supervised);
  void on_children();
  void tell_lost();
  void lose_daemon();
  void order_stop(pid_t supervisor, Supervised& supervised, const StopTask& order);
  void to_daemon(const ExecMessage& message, UniqueFd attached = UniqueFd());

  const ExecutorOptions& options_;
  const CgroupTree& cgroups_;
  const HardwareClock* hardware_clock_;
  MessageSocket daemon_channel_;
  Lifeline lifeline_;
  pid_t daemon_;
  UniqueFd signals_, lease_timer_;
  int64_t lease_deadline_boot_ns_ = 0;
  PauseDetector pauses_;
  int64_t next_look_boot_ns_ = 0, last_pause_boot_ns_ = 0;
  bool lease_held_ = false;
  WaitingOrders waiting_;
  std::map<pid_t, Supervised> supervised_;
  LostTasks lost_;
};

Status Warden::prepare() {
  if (::setsid() < 0) return fail_errno(errno, "setsid");
  // Preferences: the lease is kept best when the warden is neither slowed nor chosen to die.
  ::setpriority(PRIO_PROCESS, 0, kWardenNice);
  if (UniqueFd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score)
    (void)!::write(score.get(), kWardenOomScore.data(), kWardenOomScore.size());
  auto signals = become_minder("tierpilot-warden", lifeline_.fds_and(daemon_channel_.fd()));
  if (!signals) return tl::unexpected(signals.error());
  signals_ = std::move(*signals);
  // A second sign beside the socket, whose other end a child of the daemon could have inherited.
  if (::prctl(PR_SET_PDEATHSIG, SIGUSR1) < 0) return fail_errno(errno, "PR_SET_PDEATHSIG");
  if (::getppid() != daemon_) return fail(ErrorCode::kUnreachable, "the daemon is dead already");
  // CLOCK_BOOTTIME: a lease also ends while the machine sleeps, and is then acted on at wake-up.
  lease_timer_.reset(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!lease_timer_) return fail_errno(errno, "timerfd");
  return {};
}

Status Warden::run() {
  if (!options_.other_users && ::geteuid() != 0)
    if (auto status = give_up_user_privileges(); !status) return status;
  if (auto status = prepare(); !status) return status;
  const auto patience = std::chrono::milliseconds(options_.kill_patience_ms);
  while (daemon_channel_.fd() >= 0 || !supervised_.empty() || lost_.wait(patience)) {
    const auto talking = wait_for_events();
    if (system_clock().boot_ns() >= next_look_boot_ns_) look_at_clock();
    if (lease_held_ && system_clock().boot_ns() >= lease_deadline_boot_ns_) expire_lease();
    for (const pid_t pid : talking) relay(supervised_.at(pid));
    on_children();
    on_daemon();
    if (::getppid() != daemon_) lose_daemon();
  }
  return {};
}

// Returns the supervisors that have something to say.
std::vector<pid_t> Warden::wait_for_events() {
  const short daemon_events = daemon_channel_.backlog() ? POLLIN | POLLOUT : POLLIN;
  std::vector<pollfd> sources;
  for (const auto& [pid, supervised] : supervised_)
    sources.push_back({supervised.channel.fd(), POLLIN, 0});
  sources.push_back({signals_.get(), POLLIN, 0});
  sources.push_back({lease_timer_.get(), POLLIN, 0});
  sources.push_back({daemon_channel_.fd(), daemon_events, 0});
  ::poll(sources.data(), sources.size(), poll_timeout_ms());
  signalfd_siginfo signal;
  while (::read(signals_.get(), &signal, sizeof signal) > 0) {
  }
  std::vector<pid_t> talking;
  auto source = sources.begin();
  for (const auto& [pid, supervised] : supervised_) {
    if ((source++)->revents) talking.push_back(pid);
  }
  return talking;
}

// All that is there is read, and one launch made a turn: no burst of them delays a lease that was
// extended, its check, or the stop of what runs.
void Warden::on_daemon() {
  if (daemon_channel_.fd() < 0) return;
  if (!daemon_channel_.flush()) return lose_daemon();
  for (int left = kMostReadATurn; left > 0 && !waiting_.full(); --left) {
    auto message = daemon_channel_.receive();
    if (message && !*message) break;
    if (!message && message.error().code == ErrorCode::kUnreachable) return lose_daemon();
    if (!message)
      spdlog::error("warden: {}", message.error().message);
    else if (waiting_.delays(**message))
      waiting_.push(std::move(**message));
    else
      obey(**message);
  }
  if (!waiting_.empty()) obey(waiting_.pop());
}

void Warden::obey(const ExecMessage& message) {
  if (const auto* task = std::get_if<TaskLaunch>(&message)) launch(*task);
  if (const auto* order = std::get_if<StopTask>(&message)) stop(*order);
  if (const auto* order = std::get_if<StandStill>(&message)) pass_on(*order);
  if (const auto* order = std::get_if<OpenFile>(&message)) pass_on(*order);
  if (const auto* lease = std::get_if<LeaseExtension>(&message)) extend_lease(*lease);
}

void Warden::launch(const TaskLaunch& task) {
  if (!lease_held_ || system_clock().boot_ns() >= lease_deadline_boot_ns_)
    return refuse(task, "the node's lease has ended");
  auto pair = MessageSocket::socket_pair();
  if (!pair) return refuse(task, pair.error().message);
  const pid_t pid = ::fork();
  if (pid < 0) return refuse(task, fail_errno(errno, "fork").value().message);
  if (pid == 0) supervise(task, options_, cgroups_, std::move(pair->second), std::move(lifeline_));
  supervised_.emplace(pid, Supervised{task.task_id, task.attempt,
                                      MessageSocket(std::move(pair->first)), remains_of(task)});
}

// Where this fails too, the next daemon does it.
void Warden::clear(const TaskLaunch& remains) {
  const auto give_up = [&](const std::string& why) {
    to_daemon(TaskCleared{remains.task_id, remains.attempt, "its supervisor was killed: " + why});
  };
  auto pair = MessageSocket::socket_pair();
  if (!pair) return give_up(pair.error().message);
  const pid_t pid = ::fork();
  if (pid < 0) return give_up(fail_errno(errno, "fork").value().message);
  if (pid == 0) clear_after(remains, std::move(pair->second), std::move(lifeline_));
  supervised_.emplace(pid, Supervised{.task_id = remains.task_id,
                                      .attempt = remains.attempt,
                                      .channel = MessageSocket(std::move(pair->first)),
                                      .exit_reported = true});
}

// Best effort: who asked is told nothing, or by the task's end.
template <class Order>
void Warden::pass_on(const Order& order) {
  for (auto& [pid, supervised] : supervised_)
    if (supervised.task_id == order.task_id && supervised.attempt == order.attempt &&
        !supervised.exit_reported)
      (void)supervised.channel.send(order);
}

void Warden::refuse(const TaskLaunch& task, std::string why) {
  if (task.user) to_daemon(TaskCleared{task.task_id, task.attempt, {}});
  to_daemon(ProcessExit{.task_id = task.task_id,
                        .attempt = task.attempt,
                        .how = TaskEnd::kCouldNotStart,
                        .node_fault = true,
                        .reason = std::move(why)});
}

void Warden::stop(const StopTask& order) {
  for (auto& [pid, supervised] : supervised_) {
    if (supervised.task_id == order.task_id && supervised.attempt == order.attempt)
      order_stop(pid, supervised, order);
  }
}

void Warden::order_stop(pid_t supervisor, Supervised& supervised, const StopTask& order) {
  if (supervised.exit_reported) return;
  // Whoever stopped it, it has to act now; one that cannot be told dies, and its task with it.
  ::kill(supervisor, SIGCONT);
  if (!supervised.channel.send(order) || supervised.channel.backlog()) ::kill(supervisor, SIGKILL);
}

// What was asked for before a pause counts from before it: the next answer is near.
void Warden::extend_lease(const LeaseExtension& lease) {
  if (lease.asked_boot_ns <= last_pause_boot_ns_) return;
  if (lease.deadline_boot_ns <= std::max(lease_deadline_boot_ns_, system_clock().boot_ns())) return;
  lease_deadline_boot_ns_ = lease.deadline_boot_ns;
  lease_held_ = true;
  set_lease_timer();
}

void Warden::set_lease_timer() const {
  itimerspec timer{};
  timer.it_value.tv_sec = lease_deadline_boot_ns_ / 1'000'000'000;
  timer.it_value.tv_nsec = lease_deadline_boot_ns_ % 1'000'000'000;
  ::timerfd_settime(lease_timer_.get(), TFD_TIMER_ABSTIME, &timer, nullptr);
}

int Warden::poll_timeout_ms() const {
  if (!waiting_.empty()) return 0;
  const int strays_ms = lost_.look_again_ms();
  if (!hardware_clock_ || supervised_.empty()) return strays_ms;
  const int64_t left_ns = next_look_boot_ns_ - system_clock().boot_ns();
  const int most_ms = strays_ms < 0 ? kLookAtClockMs : std::min(strays_ms, kLookAtClockMs);
  return static_cast<int>(std::clamp<int64_t>(left_ns / 1'000'000 + 1, 0, most_ms));
}

// The coordinator's clock went on in a pause, so the lease ends as much sooner.
void Warden::look_at_clock() {
  if (!hardware_clock_) return;
  const auto reading = hardware_clock_->read();
  next_look_boot_ns_ = system_clock().boot_ns() + kLookAtClockMs * 1'000'000LL;
  const int64_t paused_ns = reading ? pauses_.paused_ns(*reading) : 0;
  if (paused_ns == 0) return;
  spdlog::warn(
      "warden: this machine was paused for up to {:.1f} s, as its hardware clock tells; the lease "
      "ends as much sooner",
      static_cast<double>(paused_ns) / 1e9);
  last_pause_boot_ns_ = reading->boot_after_ns;
  lease_deadline_boot_ns_ -= paused_ns;
  if (lease_held_ && system_clock().boot_ns() >= lease_deadline_boot_ns_) expire_lease();
  if (lease_held_) set_lease_timer();
}

void Warden::expire_lease() {
  lease_held_ = false;
  const itimerspec off{};  // it may be due only later: a pause ends a lease sooner
  ::timerfd_settime(lease_timer_.get(), 0, &off, nullptr);
  for (auto& [pid, supervised] : supervised_)
    order_stop(pid, supervised,
               {supervised.task_id, supervised.attempt, 0, TaskEnd::kLeaseExpired});
}

void Warden::relay(Supervised& supervised) {
  while (supervised.channel.fd() >= 0) {
    UniqueFd attached;
    auto message = supervised.channel.receive(&attached);
    if (!message) return supervised.channel.close();
    if (!*message) return;
    if (std::holds_alternative<ProcessExit>(**message)) supervised.exit_reported = true;
    if (std::holds_alternative<TaskCleared>(**message)) supervised.remains.reset();
    to_daemon(**message, std::move(attached));
  }
}

void Warden::on_children() {
  int status = 0;
  for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto found = supervised_.find(pid);
    if (found == supervised_.end()) continue;
    Supervised& ended = found->second;
    relay(ended);
    auto remains = std::move(ended.remains);
    if (!ended.exit_reported)
      lost_.add({.task_id = ended.task_id,
                 .attempt = ended.attempt,
                 .how = TaskEnd::kLost,
                 .reason = how_it_was_lost(status)},
                std::exchange(remains, std::nullopt));
    if (WIFSIGNALED(status)) lost_.may_be_strays();
    supervised_.erase(found);
    if (remains) clear(*remains);
  }
  tell_lost();
}

void Warden::tell_lost() {
  const auto is_supervisor = [this](pid_t child) { return supervised_.contains(child); };
  const auto patience = std::chrono::milliseconds(options_.kill_patience_ms);
  for (const auto& lost : lost_.kill_strays(is_supervisor, patience)) {
    if (auto cgroup = cgroups_.find(lost.exit.task_id, lost.exit.attempt)) (void)cgroup->remove();
    to_daemon(lost.exit);
    if (lost.remains) clear(*lost.remains);
  }
}

void Warden::lose_daemon() {
  if (daemon_channel_.fd() < 0) return;
  daemon_channel_.close();
  waiting_.clear();
  for (auto& [pid, supervised] : supervised_)
    order_stop(pid, supervised, {supervised.task_id, supervised.attempt, 0, TaskEnd::kLost});
}

void Warden::to_daemon(const ExecMessage& message, UniqueFd attached) {
  if (daemon_channel_.fd() < 0) return;
  if (auto status = daemon_channel_.send(message, std::move(attached)); !status)
    spdlog::error("warden: {}", status.error().message);
}

}  // namespace

void run_warden(const ExecutorOptions& options, const CgroupTree& cgroups,
                const HardwareClock* hardware_clock, UniqueFd socket, Lifeline lifeline,
                pid_t daemon) {
  Warden warden(options, cgroups, hardware_clock, std::move(socket), std::move(lifeline), daemon);
  if (auto status = warden.run(); !status) spdlog::critical("warden: {}", status.error().message);
  ::_exit(0);
}

}  // namespace tierpilot

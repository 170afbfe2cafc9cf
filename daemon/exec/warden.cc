#include "daemon/exec/warden.h"

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
#include <map>

#include "base/clock.h"
#include "daemon/exec/message_socket.h"
#include "daemon/exec/process.h"
#include "daemon/exec/supervisor.h"

namespace tierpilot {
namespace {

constexpr int kStrayRetryMs = 20;
constexpr int kWardenNice = -5;
constexpr std::string_view kWardenOomScore = "-900";

// A task as the warden sees it: one supervisor.
struct Supervised {
  uint64_t task_id;
  uint32_t attempt;
  MessageSocket channel;
  bool exit_reported = false;
};

class Warden {
 public:
  Warden(const ExecutorOptions& options, const CgroupTree& cgroups, UniqueFd socket,
         Lifeline lifeline, pid_t daemon)
      : options_(options),
        cgroups_(cgroups),
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
  void refuse(const TaskLaunch& task, std::string why);
  void stop(const StopTask& order);
  void extend_lease(int64_t deadline_boot_ns);
  void expire_lease();
  void relay(Supervised& supervised);
  void on_children();
  void kill_strays();
  void lose_daemon();
  void order_stop(pid_t supervisor, Supervised& supervised, const StopTask& order);
  void to_daemon(const ExecMessage& message);

  const ExecutorOptions& options_;
  const CgroupTree& cgroups_;
  MessageSocket daemon_channel_;
  Lifeline lifeline_;
  pid_t daemon_;
  UniqueFd signals_, lease_timer_;
  int64_t lease_deadline_boot_ns_ = 0;
  bool lease_held_ = false;
  std::map<pid_t, Supervised> supervised_;
  // Exits of killed supervisors, told when the processes that these left are dead.
  std::vector<ProcessExit> lost_;
};

Status Warden::prepare() {
  if (::setsid() < 0) return fail_errno(errno, "setsid");
  // Preferences: the lease is kept best when the warden is neither slowed nor chosen to die.
  ::setpriority(PRIO_PROCESS, 0, kWardenNice);
  if (UniqueFd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score)
    (void)!::write(score.get(), kWardenOomScore.data(), kWardenOomScore.size());
  auto signals = become_minder("tierpilot-warden",
                               {daemon_channel_.fd(), lifeline_.pipe.get(), lifeline_.lock.get()});
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
  if (auto status = prepare(); !status) return status;
  while (daemon_channel_.fd() >= 0 || !supervised_.empty() || !lost_.empty()) {
    const auto talking = wait_for_events();
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
  ::poll(sources.data(), sources.size(), lost_.empty() ? -1 : kStrayRetryMs);
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

// One message per turn: no burst of launches delays the check of the lease.
void Warden::on_daemon() {
  if (daemon_channel_.fd() < 0) return;
  if (!daemon_channel_.flush()) return lose_daemon();
  auto message = daemon_channel_.receive();
  if (message && *message) return obey(**message);
  if (message) return;
  if (message.error().code == ErrorCode::kUnreachable) return lose_daemon();
  spdlog::error("warden: {}", message.error().message);
}

void Warden::obey(const ExecMessage& message) {
  if (const auto* task = std::get_if<TaskLaunch>(&message)) launch(*task);
  if (const auto* order = std::get_if<StopTask>(&message)) stop(*order);
  if (const auto* lease = std::get_if<LeaseExtension>(&message))
    extend_lease(lease->deadline_boot_ns);
}

void Warden::launch(const TaskLaunch& task) {
  if (!lease_held_ || system_clock().boot_ns() >= lease_deadline_boot_ns_)
    return refuse(task, "the node's lease has ended");
  auto pair = MessageSocket::socket_pair();
  if (!pair) return refuse(task, pair.error().message);
  const pid_t pid = ::fork();
  if (pid < 0) return refuse(task, fail_errno(errno, "fork").value().message);
  if (pid == 0) supervise(task, options_, cgroups_, std::move(pair->second), std::move(lifeline_));
  supervised_.emplace(
      pid, Supervised{task.task_id, task.attempt, MessageSocket(std::move(pair->first))});
}

void Warden::refuse(const TaskLaunch& task, std::string why) {
  to_daemon(ProcessExit{.task_id = task.task_id,
                        .attempt = task.attempt,
                        .how = TaskEnd::kCouldNotStart,
                        .node_fault = true,
                        .reason = fmt::format("task {}: {}", task.task_id, why)});
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

void Warden::extend_lease(int64_t deadline_boot_ns) {
  if (deadline_boot_ns <= std::max(lease_deadline_boot_ns_, system_clock().boot_ns())) return;
  lease_deadline_boot_ns_ = deadline_boot_ns;
  lease_held_ = true;
  itimerspec timer{};
  timer.it_value.tv_sec = lease_deadline_boot_ns_ / 1'000'000'000;
  timer.it_value.tv_nsec = lease_deadline_boot_ns_ % 1'000'000'000;
  ::timerfd_settime(lease_timer_.get(), TFD_TIMER_ABSTIME, &timer, nullptr);
}

void Warden::expire_lease() {
  lease_held_ = false;
  uint64_t expirations;
  (void)!::read(lease_timer_.get(), &expirations, sizeof expirations);
  for (auto& [pid, supervised] : supervised_)
    order_stop(pid, supervised,
               {supervised.task_id, supervised.attempt, 0, TaskEnd::kLeaseExpired});
}

void Warden::relay(Supervised& supervised) {
  while (supervised.channel.fd() >= 0) {
    auto message = supervised.channel.receive();
    if (!message) return supervised.channel.close();
    if (!*message) return;
    if (std::holds_alternative<ProcessExit>(**message)) supervised.exit_reported = true;
    to_daemon(**message);
  }
}

void Warden::on_children() {
  for (pid_t pid; (pid = ::waitpid(-1, nullptr, WNOHANG)) > 0;) {
    const auto found = supervised_.find(pid);
    if (found == supervised_.end()) continue;
    Supervised& ended = found->second;
    relay(ended);
    if (!ended.exit_reported)
      lost_.push_back({.task_id = ended.task_id,
                       .attempt = ended.attempt,
                       .how = TaskEnd::kLost,
                       .reason = "its supervisor was killed, which ends the task; how far it got "
                                 "is unknown"});
    supervised_.erase(found);
  }
  if (!lost_.empty()) kill_strays();
}

// Adopted from killed supervisors: what is a child of the warden and no supervisor.
void Warden::kill_strays() {
  bool none_left = true;
  for (const pid_t child : children_of_self()) {
    if (supervised_.contains(child)) continue;
    none_left = false;
    ::kill(child, SIGKILL);
  }
  if (!none_left) return;
  for (const auto& exit : lost_) {
    if (auto cgroup = cgroups_.find(exit.task_id, exit.attempt)) (void)cgroup->remove();
    to_daemon(exit);
  }
  lost_.clear();
}

void Warden::lose_daemon() {
  if (daemon_channel_.fd() < 0) return;
  daemon_channel_.close();
  for (auto& [pid, supervised] : supervised_)
    order_stop(pid, supervised, {supervised.task_id, supervised.attempt, 0, TaskEnd::kLost});
}

void Warden::to_daemon(const ExecMessage& message) {
  if (daemon_channel_.fd() < 0) return;
  if (auto status = daemon_channel_.send(message); !status)
    spdlog::error("warden: {}", status.error().message);
}

}  // namespace

void run_warden(const ExecutorOptions& options, const CgroupTree& cgroups, UniqueFd socket,
                Lifeline lifeline, pid_t daemon) {
  Warden warden(options, cgroups, std::move(socket), std::move(lifeline), daemon);
  if (auto status = warden.run(); !status) spdlog::critical("warden: {}", status.error().message);
  ::_exit(0);
}

}  // namespace tierpilot

#include "daemon/agent/tasks/cpu_shares.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace tierpilot::agent {
namespace {

// How far a task may run over its tokens, of which the next period has so much less.
constexpr int64_t kCheckMs = 10;
constexpr int kChecksPerPeriod = 10;
constexpr double kPeriodNs = kChecksPerPeriod * kCheckMs * 1e6;

}  // namespace

CpuShares::CpuShares(EventLoop& loop, Executor& executor)
    : loop_(loop), executor_(executor), self_(std::make_shared<CpuShares*>(this)) {}

void CpuShares::begin(AttemptId attempt, pid_t leader) {
  auto& running = running_[attempt];
  running.attempt = attempt;
  running.processes = TaskProcesses(executor_, leader);
  running.meter = CpuMeter(running.processes.supervisor());
}

void CpuShares::set(AttemptId attempt, const CpuShare& share) {
  const auto found = running_.find(attempt);
  if (found == running_.end()) return;
  auto& running = found->second;
  running.share = share;
  const auto confined = executor_.confine(attempt.task, attempt.attempt, share.cpus, share.cores);
  // It may have ended just now.
  if (!confined && confined.error().code != ErrorCode::kUnavailable &&
      confined.error().code != ErrorCode::kNotFound)
    spdlog::warn("task {} attempt {}: {}", attempt.task, attempt.attempt, confined.error().message);
  for (const pid_t process : running.processes.now(executor_))
    if (const auto set = set_affinity(process, share.cpus); !set)
      spdlog::warn("task {} attempt {}: {}", attempt.task, attempt.attempt, set.error().message);
  const bool had_tokens = std::exchange(
      running.by_tokens, !confined && share.cores < static_cast<double>(share.cpus.size()));
  // What it used before it had any is not owed.
  if (running.by_tokens && !had_tokens) running.spent_ns = static_cast<int64_t>(cpu_ns(attempt));
  if (running.by_tokens)
    watch();
  else if (running.stands)
    signal(running, false);
}

void CpuShares::let_go(AttemptId attempt) {
  const auto found = running_.find(attempt);
  if (found == running_.end()) return;
  found->second.by_tokens = false;
  signal(found->second, false);
}

void CpuShares::end(AttemptId attempt) {
  running_.erase(attempt);
}

uint64_t CpuShares::cpu_ns(AttemptId attempt) {
  const auto found = running_.find(attempt);
  if (found == running_.end()) return 0;
  if (const auto cgroup = executor_.cgroup(attempt.task, attempt.attempt)) {
    const auto figures = cgroup->figures();
    return static_cast<uint64_t>(figures.cpu_user_ns.value_or(0) +
                                 figures.cpu_system_ns.value_or(0));
  }
  auto& running = found->second;
  // With tokens it is looked at often enough.
  if (!running.by_tokens) running.meter.look();
  return static_cast<uint64_t>(running.meter.used_ns());
}

uint64_t CpuShares::waited_ns(AttemptId attempt) {
  const auto found = running_.find(attempt);
  if (found == running_.end()) return 0;
  auto& running = found->second;
  running.delays_pace.look([&] { count_delays(running); });
  count_standing(running);
  return running.waited_ns;
}

void CpuShares::count_delays(Running& running) {
  std::map<pid_t, int64_t> now_ns;
  for (const pid_t process : running.processes.list(executor_)) {
    const int64_t delay_ns = now_ns[process] = run_delay_ns(process);
    const auto before = running.delays_ns.find(process);
    const int64_t since_ns = before == running.delays_ns.end() ? 0 : before->second;
    running.waited_ns += static_cast<uint64_t>(std::max<int64_t>(0, delay_ns - since_ns));
  }
  running.delays_ns = std::move(now_ns);
}

void CpuShares::count_standing(Running& running) {
  const int64_t now_ns = system_clock().boot_ns();
  if (running.stands) running.waited_ns += static_cast<uint64_t>(now_ns - running.stands_since_ns);
  running.stands_since_ns = now_ns;
}

void CpuShares::watch() {
  if (watching_) return;
  watching_ = true;
  loop_.detach(loop_.after_ms(kCheckMs).then([weak = std::weak_ptr(self_)] {
    if (const auto self = weak.lock()) (*self)->check();
  }),
               "CPU shares");
}

void CpuShares::check() {
  watching_ = false;
  const bool new_period = ++checks_ % kChecksPerPeriod == 0;
  // First, so that whoever stands still is looked at again whatever happens here.
  if (std::any_of(running_.begin(), running_.end(),
                  [](const auto& each) { return each.second.by_tokens; }))
    watch();
  for (auto& [attempt, running] : running_)
    if (running.by_tokens) keep(running, new_period);
}

void CpuShares::keep(Running& running, bool new_period) {
  if (new_period)
    running.meter.look();
  else
    running.meter.glance();
  const int64_t used_ns = running.meter.used_ns();
  running.tokens.spend(used_ns - std::exchange(running.spent_ns, used_ns));
  if (new_period) running.tokens.refill(static_cast<int64_t>(running.share->cores * kPeriodNs));
  if (running.tokens.may_run() == running.stands) signal(running, !running.stands);
}

void CpuShares::signal(Running& running, bool stop) {
  count_standing(running);
  running.stands = stop;
  executor_.stand_still(running.attempt.task, running.attempt.attempt, stop);
}

}  // namespace tierpilot::agent

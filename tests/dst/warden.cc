#include "tests/dst/warden.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tierpilot::dst {

Status Warden::launch(const agent::LaunchOrder& order) {
  const auto attempt = order.assignment.attempt;
  if (at_.refuses()) return fail(ErrorCode::kIo, "fork: Resource temporarily unavailable");
  if (at_.clock.boot_ns() >= lease_ns_) return fail(ErrorCode::kUnavailable, "there is no lease");
  const auto& rank = order.assignment.rank;
  const int code = exits_with(order.assignment.argv);
  const bool writes =
      std::any_of(order.assignment.datasets.begin(), order.assignment.datasets.end(),
                  [](const ServeItem& need) { return need.write; });
  const auto& argv = order.assignment.argv;
  const auto checkpoint = parse_checkpoint_name(order.assignment.checkpoint);
  const uint64_t from = checkpoint ? checkpoint->iteration : 0;
  running_[attempt] = {.is_kept = code != 0 || !writes,
                       .began_ns = at_.clock.boot_ns(),
                       .from = from,
                       .iterations = static_cast<uint64_t>(runs_ms(argv) / kIterationMs + 1)};
  at_.judge.processes().began(run_of(attempt), at_.loop.now_ns(), rank ? rank->gang : 0);
  at_.judge.saved_work().began(
      rank ? rank->gang : attempt.task, attempt.attempt,
      {order.assignment.checkpoint, saves_every_ms(argv) > 0, at_.loop.now_ns()});
  at_.began(order.assignment);
  at_.loop.after(at_.random.between(kMs, 20 * kMs), at_.daemon,
                 [this, attempt] { at_.started(attempt); });
  const int64_t left_ms = runs_ms(argv) - static_cast<int64_t>(from) * kIterationMs;
  at_.loop.after(std::max<int64_t>(left_ms, 1) * kMs, at_.machine,
                 [this, attempt, code] { end(attempt, TaskEnd::kExited, code, ""); });
  return {};
}

std::optional<Warden::Progress> Warden::progress(AttemptId attempt) const {
  const auto found = running_.find(attempt);
  if (found == running_.end()) return std::nullopt;
  const auto& running = found->second;
  const int64_t ran_ns = at_.clock.boot_ns() - running.began_ns;
  const auto done = static_cast<uint64_t>(ran_ns / kMs / kIterationMs);
  return Progress{ran_ns, std::min(running.from + done, running.iterations), running.iterations};
}

void Warden::end(AttemptId attempt, TaskEnd how, int code, const std::string& reason) {
  const auto running = running_.extract(attempt);
  if (!running) return;
  at_.judge.processes().ended(run_of(attempt), how == TaskEnd::kExited && code == 0);
  agent::ExitReport report;
  report.how = how;
  report.reason = reason;
  report.process = ProcessExit{.task_id = attempt.task, .attempt = attempt.attempt, .how = how};
  if (how == TaskEnd::kExited) report.process->exit_code = code;
  if (how == TaskEnd::kExited && running.mapped().is_kept && !at_.disk_fails()) {
    at_.ends[attempt] = report;
    at_.judge.processes().end_kept(run_of(attempt), at_.loop.now_ns());
    at_.end_kept();
  }
  at_.loop.after(at_.random.between(0, 5 * kMs), at_.daemon,
                 [this, attempt, report = std::move(report)] { at_.exited(attempt, report); });
}

void Warden::cancel(AttemptId attempt, const std::string& reason) {
  const auto running = running_.find(attempt);
  if (running == running_.end() || std::exchange(running->second.end_asked, true)) return;
  at_.asked_to_end(attempt);
  at_.loop.after(at_.random.between(kMs, 300 * kMs), at_.machine,
                 [this, attempt, reason] { end(attempt, TaskEnd::kCancelled, 0, reason); });
}

void Warden::end_all(TaskEnd how, const std::string& reason) {
  std::vector<AttemptId> attempts;
  for (const auto& [attempt, running] : running_) attempts.push_back(attempt);
  for (const auto attempt : attempts) end(attempt, how, 0, reason);
}

void Warden::extend_lease(int64_t deadline_ns, int64_t sent_ns) {
  for (auto pause = noticed_.lower_bound(sent_ns); pause != noticed_.end(); ++pause)
    deadline_ns -= pause->second;
  lease_ns_ = std::max(lease_ns_, deadline_ns);
  at_.leased(lease_ns_);
  if (!std::exchange(watching_, true)) watch_lease();
}

void Warden::watch_lease() {
  at_.loop.after(at_.clock.until(lease_ns_), at_.machine, [this] {
    if (at_.clock.boot_ns() < lease_ns_) return watch_lease();
    watching_ = false;
    end_if_lapsed();
  });
}

// It takes a while until the last process is gone.
void Warden::end_if_lapsed() {
  at_.loop.after(at_.random.between(kMs, kKillNs), at_.machine, [this] {
    if (at_.clock.boot_ns() >= lease_ns_) end_all(TaskEnd::kLeaseExpired, "the lease has ended");
  });
}

void Warden::machine_paused(int64_t ns) {
  if (!at_.notices_pauses) return;
  const int64_t at_ns = at_.clock.boot_ns();
  at_.loop.after(ns + at_.random.between(0, kNoticeNs), at_.machine, [this, ns, at_ns] {
    noticed_[at_ns] += ns;
    lease_ns_ -= ns;
    if (at_.clock.boot_ns() >= lease_ns_) return end_if_lapsed();
    if (watching_) watch_lease();  // it is due sooner now
  });
}

void Warden::daemon_died() {
  at_.loop.after(at_.random.between(kMs, 200 * kMs), at_.machine,
                 [this] { end_all(TaskEnd::kLost, "the daemon is gone"); });
}

void Warden::power_cut() {
  end_all(TaskEnd::kLost, "the machine is gone");
}

}  // namespace tierpilot::dst

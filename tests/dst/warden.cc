#include "tests/dst/warden.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace tierpilot::dst {

Warden::Warden(Surroundings surroundings)
    : at_(std::move(surroundings)), swap_room_(at_.swap_tiers, "simulated") {
  at_.judge.swap_rooms().offered(at_.node, at_.swap_tiers);
}

Status Warden::give_swap_room(const agent::Assignment& assignment) {
  if (assignment.swap_room_bytes == 0) return {};
  const auto grant = swap_room_.take(assignment.attempt, assignment.swap_room_bytes);
  if (!grant) {
    // Else others still have it whose lease ended while the machine stood still.
    if (at_.judge.processes().is_sure(at_.node, at_.loop.now_ns()))
      at_.judge.swap_rooms().lacked(at_.node, assignment.attempt, grant.error().message);
    return tl::unexpected(grant.error());
  }
  at_.judge.swap_rooms().given(at_.node, assignment.attempt, assignment.swap_room_bytes,
                               grant->tiers);
  return {};
}

Status Warden::launch(const agent::LaunchOrder& order) {
  const auto attempt = order.assignment.attempt;
  if (at_.refuses()) return fail(ErrorCode::kIo, "fork: Resource temporarily unavailable");
  if (at_.clock.boot_ns() >= lease_ns_) return fail(ErrorCode::kUnavailable, "there is no lease");
  if (at_.gpu_is_lost(order.gpu)) return fail(ErrorCode::kUnavailable, "there is no such GPU");
  if (auto given = give_swap_room(order.assignment); !given) return given;
  const auto& rank = order.assignment.rank;
  const int code = exits_with(order.assignment.argv);
  const bool writes =
      std::any_of(order.assignment.datasets.begin(), order.assignment.datasets.end(),
                  [](const ServeItem& need) { return need.write; });
  const auto& argv = order.assignment.argv;
  const auto checkpoint = parse_checkpoint_name(order.assignment.checkpoint);
  const int64_t from_ms =
      checkpoint ? static_cast<int64_t>(checkpoint->iteration) * kIterationMs : 0;
  const int64_t now_ns = at_.clock.boot_ns();
  running_.insert_or_assign(
      attempt, Running{.is_kept = code != 0 || !writes,
                       .began_ns = now_ns,
                       .iterations = static_cast<uint64_t>(runs_ms(argv) / kIterationMs + 1),
                       .code = code,
                       .work = {now_ns, from_ms * kMs, std::max(runs_ms(argv), from_ms + 1) * kMs,
                                needs_milli(argv)},
                       .part = order.assignment.part});
  at_.judge.processes().began(run_of(attempt), at_.loop.now_ns(), rank ? rank->gang : 0);
  at_.judge.saved_work().began(
      rank ? rank->gang : attempt.task, attempt.attempt,
      {order.assignment.checkpoint, saves_every_ms(argv) > 0, at_.loop.now_ns()});
  at_.began(order.assignment);
  at_.loop.after(at_.random.between(kMs, 20 * kMs), at_.daemon,
                 [this, attempt] { at_.started(attempt); });
  end_later(attempt);
  return {};
}

void Warden::end_later(AttemptId attempt) {
  auto& running = running_.at(attempt);
  at_.loop.after(running.work.left_ns(at_.clock.boot_ns()), at_.machine,
                 [this, attempt, timer = ++running.timer] {
                   const auto found = running_.find(attempt);
                   if (found == running_.end() || found->second.timer != timer) return;
                   // The machine stood still, or its clock runs slow.
                   if (found->second.work.left_ns(at_.clock.boot_ns()) > 0 && found->second.part)
                     return end_later(attempt);
                   end(attempt, TaskEnd::kExited, found->second.code, "");
                 });
}

void Warden::confine(AttemptId attempt, const agent::CpuShare& share) {
  give(attempt, static_cast<uint32_t>(
                    std::lround(1'000 * share.cores / static_cast<double>(share.cpus.size()))));
}

void Warden::confine_gpu(AttemptId attempt, uint32_t milli) {
  give(attempt, milli);
}

void Warden::give(AttemptId attempt, uint32_t milli) {
  const auto found = running_.find(attempt);
  if (found == running_.end()) return;
  found->second.work.give(at_.clock.boot_ns(), milli);
  end_later(attempt);
}

std::vector<Warden::Part> Warden::parts() const {
  std::vector<Part> parts;
  for (const auto& [attempt, running] : running_)
    if (running.part)
      parts.push_back(
          {attempt, running.part->unit, running.work.milli(), running.part->memory_bytes});
  return parts;
}

std::optional<Warden::Progress> Warden::progress(AttemptId attempt) const {
  const auto found = running_.find(attempt);
  if (found == running_.end()) return std::nullopt;
  const auto& running = found->second;
  const int64_t now_ns = at_.clock.boot_ns();
  const auto done = static_cast<uint64_t>(running.work.done_ns(now_ns) / kMs / kIterationMs);
  return Progress{running.work.used_ns(now_ns), running.work.waited_ns(now_ns),
                  std::min(done, running.iterations), running.iterations};
}

void Warden::end(AttemptId attempt, TaskEnd how, int code, const std::string& reason,
                 bool node_fault) {
  const auto running = running_.extract(attempt);
  if (!running) return;
  if (how == TaskEnd::kExited && code == 0)
    at_.judge.promises().done({attempt.task, attempt.attempt}, at_.node, at_.loop.now_ns());
  at_.judge.processes().ended(run_of(attempt), how == TaskEnd::kExited && code == 0);
  swap_room_.give_back(attempt);
  at_.judge.swap_rooms().ended(at_.node, attempt);
  agent::ExitReport report;
  report.how = how;
  report.reason = reason;
  report.node_fault = node_fault;
  report.process = ProcessExit{.task_id = attempt.task, .attempt = attempt.attempt, .how = how};
  if (how == TaskEnd::kExited) report.process->exit_code = code;
  report.process->started_boot_ns = running.mapped().began_ns;
  report.process->wall_ms = (at_.clock.boot_ns() - running.mapped().began_ns) / kMs;
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

void Warden::gpu_failed(uint32_t unit, const std::string& reason) {
  for (const auto& part : parts())
    if (part.unit == unit)
      at_.loop.after(at_.random.between(kMs, 100 * kMs), at_.machine,
                     [this, attempt = part.attempt, reason] {
                       end(attempt, TaskEnd::kLost, 0, reason, true);
                     });
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

#include "tests/dst/savers.h"

#include <utility>

namespace tierpilot::dst {
namespace {

constexpr double kNoRoom = 0.05;

}  // namespace

std::optional<uint64_t> Savers::iteration_of(AttemptId attempt) const {
  const auto progress = at_.warden.progress(attempt);
  return progress ? std::optional(progress->iteration) : std::nullopt;
}

void Savers::began(const agent::Assignment& assignment) {
  const auto& rank = assignment.rank;
  const int64_t every_ms = saves_every_ms(assignment.argv);
  if (every_ms == 0 || (rank && rank->rank != 0)) return;
  auto& job = jobs_[assignment.attempt];
  job.job = rank ? rank->gang : assignment.attempt.task;
  job.every_ns = every_ms * kMs;
  save_later(assignment.attempt, 0, job.every_ns);
}

void Savers::save_later(AttemptId attempt, int64_t from_ns, int64_t to_ns) {
  at_.loop.after(at_.random.between(from_ns, to_ns), at_.life, [this, attempt] { save(attempt); });
}

void Savers::save(AttemptId attempt) {
  const auto found = jobs_.find(attempt);
  if (found == jobs_.end()) return;
  auto& job = found->second;
  const auto iteration = iteration_of(attempt);
  if (!iteration) {
    jobs_.erase(found);
    return;
  }
  if (job.is_saving || *iteration <= job.last) return;
  const CheckpointName name{job.job, attempt.attempt, *iteration};
  if (at_.random.chance(kNoRoom)) return save_later(attempt, kSecond / 2, kSecond);
  job.is_saving = true;
  at_.pool.create(to_string(name), *iteration + 1,
                  [this, attempt, name, began_ns = at_.loop.now_ns()](auto made) {
                    saved(attempt, name, began_ns, made);
                  });
}

void Savers::saved(AttemptId attempt, const CheckpointName& name, int64_t began_ns,
                   const Result<ReplicaChange>& made) {
  const auto found = jobs_.find(attempt);
  if (found != jobs_.end()) {
    found->second.is_saving = false;
    if (made) found->second.last = name.iteration;
    save_later(attempt, found->second.every_ns / 2, found->second.every_ns);
  }
  if (!made) return;
  at_.judge.saved_work().saved(name, made->digest.low, at_.loop.now_ns(),
                               iteration_of(attempt).has_value());
  const auto took_ns = static_cast<uint64_t>(at_.loop.now_ns() - began_ns);
  at_.report(agent::CheckpointedEvent{attempt, made->name, took_ns, took_ns});
}

void Savers::asked_to_end(AttemptId attempt) {
  if (jobs_.contains(attempt) && at_.random.chance(0.3)) save(attempt);
}

void Savers::tell(AttemptId attempt, const JobAdvice& advice) {
  const auto job = jobs_.find(attempt);
  if (job == jobs_.end() || !iteration_of(attempt)) return;
  if (std::holds_alternative<CheckpointNow>(advice)) {
    at_.judge.saved_work().heard(attempt, at_.loop.now_ns());
    // After the iteration that it is in, which may last.
    const bool is_slow = at_.random.chance(0.2);
    save_later(attempt, 0, is_slow ? 4 * kSecond : 100 * kMs);
  } else if (const auto* safe = std::get_if<CheckpointSafe>(&advice); safe && safe->copies > 1) {
    // One with one copy goes with its node, as the job is told.
    at_.judge.saved_work().told_safe(job->second.job, safe->iteration);
  }
}

}  // namespace tierpilot::dst

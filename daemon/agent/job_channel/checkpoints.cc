#include "daemon/agent/job_channel/checkpoints.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/bytes.h"
#include "model/checkpoint_name.h"

namespace tierpilot::agent {
void Checkpoints::begin(const Assignment& assignment) {
  auto& job = jobs_[assignment.attempt];
  job.task = assignment.rank ? assignment.rank->gang : assignment.attempt.task;
  job.rank = assignment.rank ? assignment.rank->rank : 0;
}

Status Checkpoints::acceptable(const Job& job, const JobCheckpoint& asked) const {
  if (job.rank != 0)
    return fail(ErrorCode::kInvalid,
                fmt::format("rank {} cannot: rank 0 saves for all ranks", job.rank));
  if (job.busy) return fail(ErrorCode::kConflict, "the one before it is not saved yet");
  if (job.has_any && asked.iteration <= job.iteration)
    return fail(ErrorCode::kInvalid,
                fmt::format("iteration {} is not after that of the last one, {}", asked.iteration,
                            job.iteration));
  if (job.last_ns && clock_.boot_ns() - *job.last_ns < kLeastGapMs * 1'000'000)
    return fail(ErrorCode::kExhausted,
                fmt::format("less than {} ms after the last one", kLeastGapMs));
  return {};
}

Status Checkpoints::fits(const std::string& path, const UniqueFd& file) const {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fail_errno(errno, path);
  const uint64_t most = pool_.usage().fast_budget_bytes;
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (bytes <= most) return {};
  return fail(ErrorCode::kExhausted,
              fmt::format("'{}' has {}, more than the node's fast tier, {}: no job could begin "
                          "from it",
                          path, format_bytes(bytes), format_bytes(most)));
}

void Checkpoints::save(AttemptId attempt, const JobCheckpoint& asked) {
  const auto found = jobs_.find(attempt);
  if (found == jobs_.end()) return;
  auto& job = found->second;
  if (const auto status = acceptable(job, asked); !status)
    return channels_.say(attempt,
                         job_checkpoint_failed_line(asked.iteration, status.error().message));
  job.busy = true;
  open_(attempt, asked.path,
        [weak = std::weak_ptr(self_), attempt, asked](Result<UniqueFd> opened) {
          if (const auto self = weak.lock()) (*self)->take(attempt, asked, std::move(opened));
        });
}

void Checkpoints::take(AttemptId attempt, const JobCheckpoint& asked, Result<UniqueFd> opened) {
  const auto found = jobs_.find(attempt);
  if (found == jobs_.end()) return;
  auto& job = found->second;
  const Status good = opened ? fits(asked.path, *opened) : tl::unexpected(opened.error());
  if (!good) {
    job.busy = false;
    job.last_ns = clock_.boot_ns();
    return channels_.say(attempt,
                         job_checkpoint_failed_line(asked.iteration, good.error().message));
  }
  auto file = std::make_shared<UniqueFd>(std::move(*opened));
  const CheckpointName name{job.task, attempt.attempt, asked.iteration};
  pool_.create(to_string(name), ImportOpenFile{file, asked.path},
               [weak = std::weak_ptr(self_), attempt, asked,
                begin_ns = clock_.boot_ns()](Result<ReplicaChange> made) {
                 if (const auto self = weak.lock()) (*self)->saved(attempt, asked, begin_ns, made);
               });
}

void Checkpoints::saved(AttemptId attempt, const JobCheckpoint& asked, int64_t begin_ns,
                        const Result<ReplicaChange>& made) {
  const int64_t now_ns = clock_.boot_ns();
  const auto copy_ns = static_cast<uint64_t>(now_ns - begin_ns);
  if (const auto job = jobs_.find(attempt); job != jobs_.end()) {
    job->second.busy = false;
    job->second.last_ns = now_ns;
    if (made) {
      job->second.has_any = true;
      job->second.iteration = asked.iteration;
    }
  }
  if (!made) {
    channels_.say(attempt, job_checkpoint_failed_line(asked.iteration, made.error().message));
    return;
  }
  constexpr uint64_t kMostSavingMs = 24 * 3'600'000;  // as the job says: not to be believed
  const uint64_t stall_ns = std::min(asked.saving_ms, kMostSavingMs) * 1'000'000 + copy_ns;
  report_(CheckpointedEvent{attempt, made->name, stall_ns, copy_ns});
  channels_.checkpoint_saved(
      attempt, job_checkpoint_saved_line(asked.iteration, made->bytes, copy_ns / 1'000'000));
}

}  // namespace tierpilot::agent

#include "policies/sharing/live/promises_ahead.h"

#include <algorithm>
#include <utility>

namespace tierpilot::sharing {
namespace {

LiveJob as_started(const WaitingJob& job, const Start& start, const Predicted& predicted) {
  LiveJob started;
  started.id = job.id;
  started.job_class = job.job_class;
  started.sharer = job.sharer;
  started.share = start.share;
  started.need_milli = predicted.milli;
  started.left_s = predicted.run_s;
  started.left_upper_s = predicted.run_upper_s;
  started.start_left_s = predicted.start_s;
  started.promise_left_s = job.promise_left_s;
  return started;
}

}  // namespace

void PromisesAhead::waits(WaitingJob job, bool made) {
  if (job.job_class != JobClass::kLatencySensitive || is_full()) return;
  any_made_ = any_made_ || made;
  ahead_.push_back({std::move(job), made});
  kept_.reset();
}

std::set<uint64_t> PromisesAhead::that_can_be_kept(const std::vector<LiveNode>& nodes) {
  plans_ += ahead_.size();
  std::vector<WaitingJob> all;
  for (const auto& each : ahead_) all.push_back(each.job);
  const auto promises = policy_.promises(nodes, {}, all);
  std::set<uint64_t> kept;
  for (const auto& [job, made] : ahead_) {
    if (made && promises->ask(job).admitted) kept.insert(job.id);
    promises->add(job);
  }
  return kept;
}

bool PromisesAhead::would_break(std::vector<LiveNode>& nodes, const WaitingJob& job,
                                const Start& start) {
  // Best-effort jobs give way.
  if (!any_made_ || job.job_class != JobClass::kLatencySensitive) return false;
  if (!kept_ && plans_ < most_plans_) kept_ = that_can_be_kept(nodes);
  if (kept_ && kept_->empty()) return false;
  if (plans_ >= most_plans_) return ++refusals_ > 0;
  auto& unit = nodes[start.node][start.unit];
  unit.jobs.push_back(as_started(job, start, job.predicted.at(unit.type)));
  const auto kept = that_can_be_kept(nodes);
  unit.jobs.pop_back();
  const bool breaks = !std::includes(kept.begin(), kept.end(), kept_->begin(), kept_->end());
  refusals_ += breaks ? 1 : 0;
  return breaks;
}

}  // namespace tierpilot::sharing

#include "policies/sharing/live/promises_ahead.h"

#include <algorithm>
#include <utility>

#include "policies/sharing/live/trial.h"

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

std::map<uint64_t, PromisesAhead::Outlook> PromisesAhead::outlooks(
    const std::vector<LiveNode>& nodes) {
  plans_ += ahead_.size();
  std::vector<WaitingJob> all;
  for (const auto& each : ahead_) all.push_back(each.job);
  const auto promises = policy_.promises(nodes, {}, all);
  std::map<uint64_t, Outlook> found;
  for (const auto& [job, made] : ahead_) {
    if (made && promises->ask(job).admitted) {
      found[job.id] = Outlook::kSure;
    } else if (made) {
      ++plans_;
      found[job.id] = promises->ask(hoped(job)).admitted ? Outlook::kLikely : Outlook::kLost;
    }
    promises->add(job);
  }
  return found;
}

bool PromisesAhead::has_hope(const std::map<uint64_t, Outlook>& outlooks) {
  return std::ranges::any_of(outlooks,
                             [](const auto& each) { return each.second > Outlook::kLost; });
}

bool PromisesAhead::would_break(std::vector<LiveNode>& nodes, const WaitingJob& job,
                                const Start& start) {
  // Best-effort jobs give way.
  if (!any_made_ || job.job_class != JobClass::kLatencySensitive) return false;
  if (!kept_ && plans_ < most_plans_) kept_ = outlooks(nodes);
  if (kept_ && !has_hope(*kept_)) return false;
  if (plans_ >= most_plans_) return ++refusals_ > 0;
  auto& unit = nodes[start.node][start.unit];
  unit.jobs.push_back(as_started(job, start, job.predicted.at(unit.type)));
  const auto with = outlooks(nodes);
  unit.jobs.pop_back();
  const bool breaks = std::ranges::any_of(
      *kept_, [&](const auto& without) { return with.at(without.first) < without.second; });
  refusals_ += breaks ? 1 : 0;
  return breaks;
}

}  // namespace tierpilot::sharing

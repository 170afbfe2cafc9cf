#include "policies/sharing/live/waiting_promises.h"

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

WaitingPromises::WaitingPromises(SharePolicy& policy, std::vector<WaitingJob> made,
                                 size_t most_plans)
    : policy_(policy), most_plans_(most_plans), made_(std::move(made)) {
  if (made_.size() > kMost) made_.resize(kMost);
}

size_t WaitingPromises::place_of(uint64_t job) const {
  const auto found = std::ranges::find(made_, job, &WaitingJob::id);
  return static_cast<size_t>(found - made_.begin());
}

void WaitingPromises::started(uint64_t job) {
  std::erase_if(made_, [job](const WaitingJob& each) { return each.id == job; });
  changed();
}

WaitingPromises::Outlooks WaitingPromises::foreseen(const std::vector<LiveNode>& nodes,
                                                    size_t but_for) {
  plans_ += made_.size();
  const auto promises = policy_.promises(nodes, {}, made_);
  Outlooks found(made_.size(), Outlook::kSure);
  for (size_t i = 0; i < made_.size(); ++i) {
    if (i == but_for) continue;
    const auto& job = made_[i];
    if (!promises->ask(job).admitted) {
      ++plans_;
      found[i] = promises->ask(hoped(job)).admitted ? Outlook::kLikely : Outlook::kLost;
    }
    promises->add(job);
  }
  return found;
}

bool WaitingPromises::breaks(const Outlooks& with, size_t own) const {
  const auto& without = *outlooks_;
  const bool can_wait = own == made_.size() || without[own] == Outlook::kSure;
  const size_t end = can_wait ? made_.size() : own;
  for (size_t i = 0; i < end; ++i)
    if (with[i] < without[i]) return true;
  return false;
}

bool WaitingPromises::would_break(std::vector<LiveNode>& nodes, const WaitingJob& job,
                                  const Start& start) {
  const size_t own = place_of(job.id);
  const bool is_one = own < made_.size();
  // Best-effort jobs give way.
  if (made_.size() == is_one || job.job_class != JobClass::kLatencySensitive) return false;
  const size_t most =
      is_one ? most_plans_ / 2 : most_plans_;  // the others are to be looked at, too
  if (!outlooks_ && plans_ < most) outlooks_ = foreseen(nodes, made_.size());
  if (outlooks_ &&
      std::ranges::all_of(*outlooks_, [](auto each) { return each == Outlook::kLost; }))
    return false;
  if (!outlooks_ || plans_ >= most) {
    refusals_ += is_one ? 0 : 1;
    return !is_one;
  }
  auto& unit = nodes[start.node][start.unit];
  unit.jobs.push_back(as_started(job, start, job.predicted.at(unit.type)));
  const bool would = breaks(foreseen(nodes, own), own);
  unit.jobs.pop_back();
  refusals_ += would ? 1 : 0;
  return would;
}

}  // namespace tierpilot::sharing

#include "policies/sharing/live/trial.h"

#include <algorithm>
#include <utility>

namespace tierpilot::sharing {

WaitingJob hoped(WaitingJob job) {
  for (auto& [type, predicted] : job.predicted) predicted.run_upper_s = predicted.run_s;
  return job;
}

LiveJob hoped(LiveJob job) {
  job.left_upper_s = job.left_s;
  job.on_trial = true;
  return job;
}

bool is_hopeless(const WaitingJob& job) {
  return std::all_of(job.predicted.begin(), job.predicted.end(),
                     [&](const auto& each) { return each.second.run_s >= job.promise_left_s; });
}

namespace {

bool is_over(const OnTrial& trial) {
  const auto& job = trial.job;
  if (job.predicted_s <= 0)
    return job.elapsed_s > kTrialPart * (job.elapsed_s + job.promise_left_s);
  if (job.start_left_s > 0) return job.elapsed_s > job.predicted_s;
  return job.elapsed_s - trial.start_s > kTrialPart * (job.predicted_s - trial.start_s);
}

WaitingJob as_if_it_came(const LiveJob& job, const std::string& unit_type) {
  WaitingJob anew;
  anew.id = job.id;
  anew.job_class = job.job_class;
  anew.sharer = job.sharer;
  anew.promise_left_s = job.promise_left_s;
  anew.predicted[unit_type] = {.milli = job.need_milli,
                               .run_s = job.left_s,
                               .run_upper_s = job.left_upper_s,
                               .start_s = job.start_left_s};
  return anew;
}

}  // namespace

TrialVerdict review(SharePolicy& policy, LiveUnit unit, const OnTrial& trial) {
  const auto& job = trial.job;
  std::erase_if(unit.jobs, [&](const LiveJob& other) { return other.id == job.id; });
  for (auto& other : unit.jobs) other.ends_in_s = 0;  // it runs: nobody has to end for it
  if (trial.shows_pace && job.left_s > 0) {
    const auto anew = as_if_it_came(job, unit.type);
    if (policy.admit({{std::move(unit)}}, {}, anew).admitted) return TrialVerdict::kMade;
  }
  const bool is_late = job.left_s >= job.promise_left_s;
  return is_late || is_over(trial) ? TrialVerdict::kNotMade : TrialVerdict::kGoesOn;
}

}  // namespace tierpilot::sharing

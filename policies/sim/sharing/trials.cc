#include "policies/sim/sharing/trials.h"

#include <cmath>

#include "policies/sim/sharing/timed_draws.h"

namespace tierpilot::sharing {

bool Trials::part_keeps(uint64_t job) {
  const auto found = open_.find(job);
  if (found == open_.end() || --found->second > 0) return false;
  open_.erase(found);
  return true;
}

TrialVerdict Trials::look(const Running& running, const RunningJobs& all, double now_s) {
  OnTrial trial{.job = all.as_live(running, now_s), .shows_pace = all.has_shown(running, now_s)};
  if (trial.shows_pace) {
    // The more windows were measured the better the pace is known.
    const double windows = ++looks_[running.job->id];
    const double off = std::exp(noise_ / std::sqrt(windows) * draw_normal(random_));
    trial.job.left_s *= off;
    trial.job.left_upper_s *= off;
  }
  return review(policy_, all.as_live(running.unit, now_s, false), trial);
}

}  // namespace tierpilot::sharing

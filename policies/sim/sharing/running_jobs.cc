#include "policies/sim/sharing/running_jobs.h"

#include <algorithm>
#include <stdexcept>

#include "policies/sharing/live/trial.h"

namespace tierpilot::sharing {

RunningJobs::RunningJobs(const TimedWorkload& workload, Retained retained, double seen_after_s,
                         double checkpoint_s)
    : workload_(workload),
      retained_(std::move(retained)),
      seen_after_s_(seen_after_s),
      checkpoint_s_(checkpoint_s),
      on_unit_(workload.units) {}

const Running* RunningJobs::find(uint64_t id) const {
  const auto found = running_.find(id);
  return found == running_.end() ? nullptr : &found->second;
}

void RunningJobs::start(const Running& running) {
  running_[running.job->id] = running;
  auto& there = on_unit_[running.unit];
  there.insert(std::upper_bound(there.begin(), there.end(), running.job->id), running.job->id);
}

void RunningJobs::resize(uint64_t id, uint32_t milli) {
  if (const auto found = running_.find(id); found != running_.end()) found->second.milli = milli;
}

void RunningJobs::check(size_t unit) const {
  uint32_t milli = 0;
  for (const uint64_t id : on_unit_[unit]) milli += running_.at(id).milli;
  if (milli > kWholeUnit) throw std::logic_error("more of a unit was given than there is");
}

void RunningJobs::end_trial(uint64_t id, bool made) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  found->second.on_trial = false;
  if (!made) found->second.promise_end_s = kNoPromise;
}

void RunningJobs::end(uint64_t id) {
  const auto found = running_.find(id);
  std::erase(on_unit_[found->second.unit], id);
  running_.erase(found);
}

void RunningJobs::set_speeds() {
  for (auto& [id, running] : running_) {
    running.kept = 1;
    for (const uint64_t other : on_unit_[running.unit])
      if (other != id)
        running.kept *=
            workload_.retained[running.job->model * kModels + running_.at(other).job->model];
    const double by_share = speed_with(running.milli, running.job->need_milli);
    running.speed = std::max(by_share * running.kept, kLeastSpeed);
  }
}

void RunningJobs::advance(double seconds, double counted_s, UnitTime& sums) {
  for (auto& [id, running] : running_) {
    running.left_s -= seconds * running.speed;
    const double used = running.speed * running.job->need_milli / kWholeUnit;
    sums.used += used * counted_s;
    sums.given += running.milli * counted_s / kWholeUnit;
    if (running.job->job_class == JobClass::kBestEffort) sums.best_effort += used * counted_s;
    sums.slowed += (1 - running.kept) * seconds;
    sums.ran += seconds;
  }
}

double RunningJobs::next_end_s(double now_s) const {
  double soonest_s = kNoPromise;
  for (const auto& [id, running] : running_)
    soonest_s = std::min(soonest_s, now_s + running.left_s / running.speed);
  return soonest_s;
}

Sharer RunningJobs::sharer(const Running& running, double now_s) const {
  const auto& job = *running.job;
  const uint32_t milli = has_shown(running, now_s) ? job.need_milli : job.predicted.milli;
  return {.name = model_name(job.model), .on = UnitKind::kGpu, .milli = static_cast<double>(milli)};
}

double RunningJobs::thought_kept(const Running& running, double now_s) const {
  if (!retained_) return 1;
  Kept kept;
  for (const uint64_t other : on_unit_[running.unit])
    if (other != running.job->id)
      kept = kept * retained_(sharer(running, now_s), sharer(running_.at(other), now_s));
  return kept.part();
}

double RunningJobs::thought_left_s(const Running& running, double now_s) const {
  return running.left_s * thought_kept(running, now_s) / running.kept;
}

LiveJob RunningJobs::as_live(const Running& running, double now_s) const {
  const auto& job = *running.job;
  const bool seen = has_shown(running, now_s);
  const double worked_s = job.run_s - running.left_s;
  LiveJob value;
  value.id = job.id;
  value.job_class = job.job_class;
  value.sharer = sharer(running, now_s);
  value.share.milli = running.milli;
  value.need_milli = seen ? job.need_milli : job.predicted.milli;
  value.elapsed_s = now_s - running.started_s;
  value.predicted_s = job.predicted.run_s;
  const double left_s = thought_left_s(running, now_s);
  value.left_s = seen ? left_s : std::max(1.0, job.predicted.run_s - worked_s);
  value.left_upper_s = seen ? left_s * 1.1 : std::max(1.0, job.predicted.run_upper_s - worked_s);
  value.kept = thought_kept(running, now_s);
  value.promise_left_s = running.promise_end_s - now_s;
  value.takes_checkpoints = true;
  value.unsaved_s = checkpoint_s_;
  return value;
}

LiveUnit RunningJobs::as_live(size_t unit, double now_s, bool promise_waits) const {
  const size_t type = workload_.type_of.empty() ? 0 : workload_.type_of[unit];
  LiveUnit value{workload_.types[type], {kWholeUnit, 0}, {}, promise_waits};
  for (const uint64_t id : on_unit_[unit]) {
    const auto& running = running_.at(id);
    const auto job = as_live(running, now_s);
    value.jobs.push_back(running.on_trial ? hoped(job) : job);
  }
  return value;
}

}  // namespace tierpilot::sharing

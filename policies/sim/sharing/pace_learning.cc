#include "policies/sim/sharing/pace_learning.h"

#include <cmath>

#include "policies/sim/sharing/timed_draws.h"

namespace tierpilot::sharing {

void PaceLearning::changed(size_t unit, const RunningJobs& running, double now_s) {
  const auto& there = running.on_unit(unit);
  for (const uint64_t id : there) {
    const auto& job = *running.find(id);
    std::vector<Neighbour> neighbours;
    for (const uint64_t other : there)
      if (other != id) neighbours.push_back({other, running.sharer(*running.find(other), now_s)});
    auto& watched = watched_[id];
    learn(job, watched.watch.beside(std::move(neighbours)));
    watched.from_s = now_s;
  }
}

void PaceLearning::looked(size_t unit, const RunningJobs& running, double now_s) {
  for (const uint64_t id : running.on_unit(unit)) {
    const auto& job = *running.find(id);
    auto& watched = watched_[id];
    if (now_s - watched.from_s < least_s_) continue;
    watched.from_s = now_s;
    // Iterations per second of compute; how many a job's work has does not matter.
    if (running.has_shown(job, now_s))
      learn(job, watched.watch.add(job.kept * std::exp(noise_ * draw_normal(random_))));
  }
}

void PaceLearning::learn(const Running& job, const std::optional<PaceChange>& change) {
  if (change)
    interference_.learn({.name = model_name(job.job->model), .on = UnitKind::kGpu}, *change);
}

}  // namespace tierpilot::sharing

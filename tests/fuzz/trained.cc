// Curves of losses and histories of gangs, as people keep and pass them on.
#include <cmath>

#include "policies/sim/gang/gang_history.h"
#include "policies/sim/quality/curve_files.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

FUZZ(loss_curves) {
  const auto file = sim::read_curves(fuzz::file_of(bytes));
  if (!file) return;
  size_t points = 0;
  for (const auto& curve : file->curves) {
    points += curve.points.size();
    fuzz::promise(curve.seconds.empty() || curve.seconds.size() == curve.points.size(),
                  "all points have a time, or none");
    for (const auto& point : curve.points)
      fuzz::promise(std::isfinite(point.iteration), "iterations are finite");
    for (const double s : curve.seconds) fuzz::promise(std::isfinite(s), "times are finite");
  }
  fuzz::promise(points + file->skipped == file->rows, "each row is a point or left out");
}

FUZZ(gang_jobs) {
  const auto jobs = gang::read_gang_jobs(fuzz::file_of(bytes));
  if (!jobs) return;
  double last_h = jobs->front().arrival_h;
  for (const auto& job : *jobs) {
    fuzz::promise(std::isfinite(job.arrival_h) && job.arrival_h >= last_h, "jobs are by arrival");
    fuzz::promise(job.units >= 1 && job.units <= 1'000'000 && job.work_h >= 0.1 && job.work_h <= 72,
                  "jobs have units and work");
    last_h = job.arrival_h;
  }
}

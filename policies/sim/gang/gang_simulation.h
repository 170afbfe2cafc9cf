// Training jobs on units that fail: what a placement policy makes of them. Jobs wait in the order
// of arrival; those behind may overtake one that does not fit until it has waited for
// kPatienceH, whatever the policy is. A failure of one unit ends its job's run: what was done since
// the last checkpoint is lost, the unit is under repair, and the job is first in the queue again.
#pragma once

#include "policies/gang/placement/placer.h"
#include "policies/sim/gang/gang_scene.h"

namespace tierpilot::gang {

struct GangResult {
  double makespan_h = 0;
  double bound_h = 0;  // no placement has a shorter makespan
  double mean_completion_h = 0;
  double p99_completion_h = 0;
  uint64_t restarts = 0;
  double fetch_unit_h = 0;  // in which units waited for data and checkpoints of their job
  double lost_unit_h = 0;   // to failures: work done again, and restarts
  double utilisation = 0;   // useful unit hours over those there were
  double fairness = 0;      // Jain's index of users' mean completion over work
  uint64_t unfinished = 0;  // a job that failures keep from its end
};

inline constexpr double kPatienceH = 6;

GangResult simulate(const GangScene& scene, Placer& placer);

}  // namespace tierpilot::gang

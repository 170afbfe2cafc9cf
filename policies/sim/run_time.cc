#include "policies/sim/run_time.h"

#include <algorithm>
#include <cmath>

namespace tierpilot::sim {

double run_s(const NodeGroup& group, const Checkpoints& checkpoints, double left_operations,
             bool restarted) {
  const double work_s = std::max(0.0, left_operations) / group.operations_per_s;
  double seconds = group.launch_s + work_s;
  if (restarted) seconds += checkpoints.restart_s;
  if (checkpoints.interval_s > 0)
    seconds += std::floor(work_s / checkpoints.interval_s) * checkpoints.cost_s;
  return seconds;
}

double kept_operations(const NodeGroup& group, const Checkpoints& checkpoints, double ran_s,
                       bool restarted) {
  double worked_s = ran_s - group.launch_s;
  if (restarted) worked_s -= checkpoints.restart_s;
  if (checkpoints.interval_s <= 0 || worked_s <= 0) return 0;
  return std::floor(worked_s / (checkpoints.interval_s + checkpoints.cost_s)) *
         checkpoints.interval_s * group.operations_per_s;
}

}  // namespace tierpilot::sim

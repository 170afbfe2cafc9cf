// When a simulation looks at a unit again to adjust its shares. A coordinator does so every few
// seconds; of a unit where all runs last for days nothing would be new, and half a year of them
// would take minutes to simulate.
#pragma once

#include <vector>

#include "policies/sim/sharing/running_jobs.h"

namespace tierpilot::sharing {

class UnitLooks {
 public:
  // `part` of the shortest run that is left on the unit, at least `period_s`; 0: every period.
  UnitLooks(size_t units, double period_s, double part);

  // Something changed there.
  void look_soon(size_t unit) { due_s_[unit] = 0; }
  double next_s() const;
  bool is_time(double now_s) const { return now_s >= next_s(); }
  bool is_due(size_t unit, double now_s) const { return due_s_[unit] <= now_s; }
  void looked(size_t unit, double now_s, const RunningJobs& running);
  // All that were due are looked at. `urgent_s`: the least left of a promise to somebody who waits.
  // Whether it is time to look at those who wait, too.
  bool ended(double now_s, double urgent_s);

 private:
  double period_s_;
  double part_;
  double earliest_s_;          // of the next look
  double queue_due_s_;         // of those who wait
  std::vector<double> due_s_;  // by unit
};

}  // namespace tierpilot::sharing

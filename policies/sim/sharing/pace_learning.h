// What a coordinator would learn of slow-downs in a simulation: from paces of jobs alone, never
// from what was drawn.
#pragma once

#include <map>

#include "base/random.h"
#include "policies/sharing/interference/pace_watch.h"
#include "policies/sim/sharing/running_jobs.h"

namespace tierpilot::sharing {

class PaceLearning {
 public:
  // `least_s`: of a window over which a pace is measured; `noise`: standard deviation of its
  // logarithm.
  PaceLearning(Interference& interference, double least_s, double noise, uint64_t seed)
      : interference_(interference), least_s_(least_s), noise_(noise), random_(seed) {}

  // Somebody came to the unit or left it.
  void changed(size_t unit, const RunningJobs& running, double now_s);
  // The unit is looked at.
  void looked(size_t unit, const RunningJobs& running, double now_s);
  void ended(uint64_t job) { watched_.erase(job); }

 private:
  struct Watched {
    PaceWatch watch;
    double from_s = 0;  // of the window
  };
  void learn(const Running& job, const std::optional<PaceChange>& change);

  Interference& interference_;
  double least_s_, noise_;
  SeededRandom random_;
  std::map<uint64_t, Watched> watched_;
};

}  // namespace tierpilot::sharing

// Promises on trial in a simulation: those that are not decided, and what a look at a job tells.
#pragma once

#include <cstdint>
#include <map>

#include "base/random.h"
#include "policies/sharing/live/trial.h"
#include "policies/sim/sharing/running_jobs.h"

namespace tierpilot::sharing {

class Trials {
 public:
  // `noise`: standard deviation of the logarithm of a pace between two looks.
  Trials(SharePolicy& policy, double noise, uint64_t seed)
      : policy_(policy), noise_(noise), random_(seed) {}

  // Jobs by their whole_id().
  void begin(uint64_t job, uint32_t parts) { open_[job] = parts; }
  bool is_open(uint64_t job) const { return open_.contains(job); }
  void end(uint64_t job) { open_.erase(job); }
  // One of its parts keeps the promise. True: it was the last one, and the promise is made.
  bool part_keeps(uint64_t job);

  TrialVerdict look(const Running& running, const RunningJobs& all, double now_s);
  void ended(uint64_t part) { looks_.erase(part); }

 private:
  SharePolicy& policy_;
  double noise_;
  SeededRandom random_;
  std::map<uint64_t, uint32_t> open_;   // parts that have not shown it yet
  std::map<uint64_t, uint32_t> looks_;  // at parts that show their pace
};

}  // namespace tierpilot::sharing

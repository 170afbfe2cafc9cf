// Jobs share units over time by one policy, as the coordinator carries it out: queues, promises,
// shares that change, preemption by checkpoint, neighbours that slow each other. Event by event;
// the same workload and policy give the same result.
#pragma once

#include <memory>

#include "policies/sharing/interference/interference.h"
#include "policies/sharing/live/share_policy.h"
#include "policies/sim/sharing/timed_jobs.h"

namespace tierpilot::sharing {

struct TimedRun {
  uint32_t asked = 0, made = 0, kept = 0;  // promises
  uint32_t made_on_trial = 0;              // of those made
  uint32_t not_ended = 0;                  // jobs that wait when nothing else happens
  double best_effort_mean_s = 0;           // from arrival to end, of those that ended
  // That worked on average until the last arrival, without what was done again.
  double best_effort_units = 0;
  double makespan_s = 0;
  double used = 0;   // of the units' time until the last arrival
  double given = 0;  // likewise; what is not used was given for nothing
  uint32_t preemptions = 0;
  double lost_s = 0;  // of work, by preemption
  double slowed = 0;  // by neighbours, in the mean over running time
};

struct TimedRules {
  double period_s = 10;      // between adjustments
  double period_part = 0;    // or this part of the shortest run that is left there, if that is more
  double seen_after_s = 30;  // then a job has shown its use and pace
  double checkpoint_s = 15;  // of work that a preemption loses, and its restart
  bool users_ask = false;    // for what they think; else jobs get what is predicted
  bool trials = false;       // of promises that cannot be made when jobs come
  double pace_noise = 0.06;  // standard deviation of ln(pace), as it is measured between two looks
};

// What is thought of slow-downs, and by which object it is learned; null: nothing is.
struct Thought {
  Retained retained;
  std::shared_ptr<Interference> learns;
};

TimedRun simulate_timed(const TimedWorkload& workload, SharePolicy& policy, const TimedRules& rules,
                        const Thought& thought = {});

}  // namespace tierpilot::sharing

// What no policy can do better in a simulation of shares over time.
#pragma once

#include "policies/sim/sharing/timed_jobs.h"

namespace tierpilot::sharing {

struct TimedBound {
  uint32_t asked = 0;             // promises
  uint32_t kept = 0;              // at most
  double best_effort_mean_s = 0;  // from arrival to end, at least, if all end
  double best_effort_units = 0;   // TimedRun's, at most
};

// Of all that hinders jobs only this is left: none runs faster than alone on a unit, and those that
// end in a time do no more work in it than their types of units together. Jobs may change units at
// any time, be on many at once and slow nobody, and best-effort ones take nothing. Late jobs by
// "An n Job, One Machine Sequencing Algorithm for Minimizing the Number of Late Jobs" (Moore,
// Management Science 15, 1968), for as many times beside each other as break the most promises.
// Neighbours must not make jobs faster (TimedWorkload::retained at most 1).
TimedBound bound_of(const TimedWorkload& workload);

}  // namespace tierpilot::sharing

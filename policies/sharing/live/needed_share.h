// How much of a unit a job needs to keep its promise.
#pragma once

#include <algorithm>
#include <cmath>

#include "policies/sharing/live/live_unit.h"

namespace tierpilot::sharing {

inline constexpr double kPromiseMargin = 0.95;  // of the time that is left, where a promise is made
// Where it is kept: jobs are ahead of what they need, so that what nobody foresaw costs no promise.
inline constexpr double kAim = 0.6;

// With a run of `run_s` more while nothing holds it back, beside neighbours that leave it
// `retained` of its speed. Its whole need where its run time is not known or the promise cannot be
// kept.
inline uint32_t needed_milli(uint32_t need_milli, double run_s, double promise_left_s,
                             double retained) {
  if (promise_left_s >= kNoPromise || promise_left_s <= 0 || run_s <= 0) return need_milli;
  const double speed = run_s / (promise_left_s * kAim * retained);
  return std::min(need_milli, static_cast<uint32_t>(std::ceil(need_milli * std::min(speed, 1.0))));
}

// The part of its full speed without which its promise is missed; 0 without a promise, 1 where it
// is missed in any case.
inline double needed_speed(double run_s, double promise_left_s) {
  if (promise_left_s >= kNoPromise || run_s <= 0) return 0;
  return promise_left_s <= 0 ? 1 : std::min(1.0, run_s / (promise_left_s * kPromiseMargin));
}

inline uint32_t needed_milli(const LiveJob& job, double retained) {
  return needed_milli(job.need_milli, job.left_upper_s, job.promise_left_s, retained);
}

}  // namespace tierpilot::sharing

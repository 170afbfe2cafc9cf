// How much of a unit a job needs to keep its promise.
#pragma once

#include <algorithm>
#include <cmath>

#include "policies/sharing/live/live_unit.h"

namespace tierpilot::sharing {

inline constexpr double kPromiseMargin = 0.95;  // of the time that is left, where a promise is made
// Where it is kept: jobs are ahead of what they need, so that what nobody foresaw costs no promise.
inline constexpr double kAim = 0.6;
// Where the unit is full: less ahead, before anybody has to end for it.
inline constexpr double kTightAim = 0.8;

// What is left of a run while nothing holds it back: first `start_s` that can use a whole unit,
// then the rest, that can use `need_milli` of it.
struct WorkLeft {
  uint32_t need_milli = kWholeUnit;
  double run_s = 0;  // in all; 0: not known
  double start_s = 0;
};

// Beside neighbours that leave it `retained` of its speed. All that it can use where its run time
// is not known or the promise cannot be kept.
inline uint32_t needed_milli(const WorkLeft& left, double promise_left_s, double retained,
                             double aim = kAim) {
  const uint32_t usable = left.start_s > 0 ? kWholeUnit : left.need_milli;
  if (promise_left_s >= kNoPromise) return left.need_milli;
  if (promise_left_s <= 0 || left.run_s <= 0) return usable;
  const double time_s = promise_left_s * aim * retained;
  const double start = left.start_s * kWholeUnit;  // thousandths times seconds
  const double rest_s = std::max(0.0, left.run_s - left.start_s);
  double milli = (start + rest_s * left.need_milli) / time_s;
  // With more than it needs later only its start becomes shorter.
  if (milli > left.need_milli)
    milli = time_s > rest_s ? std::max<double>(left.need_milli, start / (time_s - rest_s)) : usable;
  return std::min(usable, static_cast<uint32_t>(std::ceil(std::min<double>(milli, kWholeUnit))));
}

// The part of its full speed without which its promise is missed; 0 without a promise, 1 where it
// is missed in any case.
inline double needed_speed(double run_s, double promise_left_s) {
  if (promise_left_s >= kNoPromise || run_s <= 0) return 0;
  return promise_left_s <= 0 ? 1 : std::min(1.0, run_s / (promise_left_s * kPromiseMargin));
}

// By how much more 95 of 100 runs last at most; 1: nothing is known.
inline double upper_ratio(double run_s, double run_upper_s) {
  return run_s > 0 && run_upper_s > run_s ? run_upper_s / run_s : 1;
}
inline double upper_ratio(const LiveJob& job) {
  return upper_ratio(job.left_s, job.left_upper_s);
}
inline double upper_ratio(const Predicted& predicted) {
  return upper_ratio(predicted.run_s, predicted.run_upper_s);
}

// In which a job with a promise is to be done: a part of all the time that it had when it started,
// as others count on its end. Who is late for that catches up, but not at any cost.
inline double aimed_s(const LiveJob& job, double aim) {
  constexpr double kCatchUp = 0.5;
  if (aim >= kPromiseMargin) return aim * job.promise_left_s;
  return std::max(aim * job.promise_left_s - (1 - aim) * job.elapsed_s,
                  kCatchUp * aim * job.promise_left_s);
}

inline uint32_t needed_milli(const LiveJob& job, double retained, double aim = kAim) {
  const double promise_left_s = job.promise_left_s >= kNoPromise || job.promise_left_s <= 0
                                    ? job.promise_left_s
                                    : aimed_s(job, aim) / aim;
  return needed_milli({job.need_milli, job.left_upper_s, job.start_left_s}, promise_left_s,
                      retained, aim);
}

}  // namespace tierpilot::sharing

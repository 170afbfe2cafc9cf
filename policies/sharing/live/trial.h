// Promises on trial. What is predicted of a job may be too uncertain for its promise, although that
// is probably kept. Such a job begins all the same, as one whose prediction is right, and its
// promise is made, or not, once its own pace tells how long it takes.
#pragma once

#include <cstdint>

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

// A trial is over, without a promise, after this part of the run that was predicted, the start not
// counted: later a promise would be worth little.
inline constexpr double kTrialPart = 0.25;

// As it is if it takes no longer than it is most likely to.
WaitingJob hoped(WaitingJob job);
LiveJob hoped(LiveJob job);

// It is too late for its promise, whatever it gets now.
bool is_hopeless(const WaitingJob& job);

enum class TrialVerdict : uint8_t { kGoesOn, kMade, kNotMade };

// Of a job with a promise, as it is known.
struct OnTrial {
  LiveJob job;
  double start_s = 0;       // that it took to its first iteration, or is predicted to take
  bool shows_pace = false;  // what is left of it is known by that, not by what was predicted
};

// `unit`: with all that run there, those on trial as they are hoped to be. The promise is made by
// the same rule as those of jobs that come.
TrialVerdict review(SharePolicy& policy, LiveUnit unit, const OnTrial& trial);

}  // namespace tierpilot::sharing

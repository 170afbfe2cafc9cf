// What cores are worth to a job: the loss that it is predicted to lose with them.
#pragma once

#include <vector>

#include "policies/quality/allocator.h"

namespace tierpilot::quality {

// A stretch of cores of one job that are worth the same each.
struct Segment {
  size_t job = 0;
  double from = 0, to = 0;  // cores
  double gain = 0;          // of a core
};

struct GainOptions {
  double horizon_s = 0;   // in which what is gained counts
  double optimism = 0;    // of the lower half of the interval's growth that is hoped for
  double held_bonus = 0;  // a core that the job has already is worth so much more
};

// The predicted normalised loss reduction of `job` over cores, as its least concave majorant. Empty
// where nothing is known of it. Gains never rise from one segment to the next.
std::vector<Segment> gain_segments(const JobState& job, size_t number, const GainOptions& options);

// The reduction, as a part of the job's largest change so far and times its weight, within
// `seconds` on `cores`.
double predicted_gain(const JobState& job, double seconds, double cores, double optimism);

}  // namespace tierpilot::quality

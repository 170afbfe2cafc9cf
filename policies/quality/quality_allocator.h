// The default allocator: cores where they are predicted to lower the normalised loss most, over the
// concave majorant of each job's gain, with a floor for everybody.
#pragma once

#include "policies/quality/allocator.h"

namespace tierpilot::quality {

struct QualitySettings {
  double floor_share = 0.25;   // of the fair share, that nobody goes below
  double horizon_s = 20;       // at least, that gains are looked at over
  double optimism = 0.1;       // of what a curve may fall more than predicted
  double held_bonus = 0.1;     // the price of moving a core, as a part of its gain
  double deadline_bonus = 2;   // weight of a job whose deadline is nearer than its goal
  uint64_t least_reports = 5;  // below, a job has its fair share
  // Who has just come has all of its loss before it, and nothing can be foretold before it has made
  // its first steps: for so long it comes first, of so large a part of all cores; up to a core
  // until its first report, then to so many times its fair share.
  double newcomer_s = 30;
  double newcomer_part = 0.5;
  double newcomer_shares = 4;
};

std::unique_ptr<Allocator> make_quality(const QualitySettings& settings = {});

}  // namespace tierpilot::quality

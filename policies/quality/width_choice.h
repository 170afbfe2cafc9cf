// Whether a job of several ranks should begin again, from a checkpoint, on more of them.
#pragma once

#include <cstdint>

#include "policies/quality/allocator.h"

namespace tierpilot::quality {

struct WidthSettings {
  double horizon_s = 600;  // in which the restart has to pay
  double worth_it = 1.1;   // what it would lose of its loss must be so many times what it does now
  double least_more = 0.01;  // and more by at least this
};

struct WidthChoice {
  uint32_t ranks = 0;  // those it has: it goes on as it is
  // Predicted reductions within the horizon, as predicted_gain().
  double gain = 0;         // on that many, after the restart
  double gain_as_now = 0;  // without a restart
};

// `job.cores` are those of its `ranks` together. `most`: ranks that there is room for. `restart_s`:
// in which nothing is gained, the work since the checkpoint included. Of widths that gain about as
// much, the smallest.
WidthChoice choose_width(const JobState& job, uint32_t ranks, uint32_t most, double restart_s,
                         const WidthSettings& settings = {});

}  // namespace tierpilot::quality

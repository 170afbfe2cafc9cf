// The child's side of a sweep. Internal.
#pragma once

#include "daemon/probe/active/programs.h"
#include "daemon/probe/active/sweep.h"

namespace tierpilot {

// Observations carry the index of the point where a tier's index would be.
void probe_points(const std::vector<TierSpec>& tiers, const std::vector<SweepPoint>& points,
                  const ProbeOptions& options, const ObservationSink& sink);

}  // namespace tierpilot

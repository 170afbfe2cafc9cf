// What the probe processes run. Rounds are interleaved over tiers, so that a noisy moment of the
// machine hits all tiers alike.
#pragma once

#include <functional>
#include <vector>

#include "daemon/probe/active/measure.h"
#include "daemon/probe/active/observation.h"

namespace tierpilot {

using ObservationSink = std::function<void(const ProbeObservation&)>;

// Latency and bandwidth of every tier, as the options ask.
void probe_tiers(const std::vector<TierSpec>& tiers, const ProbeOptions& options,
                 const ObservationSink& sink);

// Eviction and promotion between neighbours; `ranked` holds indices of tiers, fast to slow.
void probe_transfers(const std::vector<TierSpec>& tiers, const std::vector<size_t>& ranked,
                     const ProbeOptions& options, const ObservationSink& sink);

}  // namespace tierpilot

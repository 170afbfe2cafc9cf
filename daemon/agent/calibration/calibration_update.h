// What a calibration becomes when tiers are measured again, or come and go, while the node runs.
#pragma once

#include <string>
#include <vector>

#include "daemon/agent/calibration/calibration.h"
#include "daemon/agent/metrics/metrics.h"

namespace tierpilot::agent {

// The NUMA nodes among the tiers. Directories are left alone: measuring them writes to a disk.
std::vector<TierSpec> remeasurable(const Calibration& calibration);

// Takes over a later measurement of some of the tiers, and ranks all anew. A tier keeps its old
// figures when the new latency is noisy and the old one was not, and those that the new measurement
// does not have. The pool keeps the two tiers it has opened.
void take_over(Calibration& calibration, const std::vector<TierMeasurement>& measured);

// Nodes that came join unmeasured, nodes that went leave. Those of the pool stay, without figures:
// the sentences that come back say so.
std::vector<std::string> follow(Calibration& calibration, const Topology& topology);

// Each tier's figures by name: "tier_dram0_latency_p50_ns", ...
std::vector<MetricValue> tier_metrics(const Calibration& calibration);

}  // namespace tierpilot::agent

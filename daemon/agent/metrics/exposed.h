// The node's figures for Prometheus. What is not available now has no series; `tierctl node show`
// has the reason.
#pragma once

#include <string>
#include <vector>

#include "base/exposition.h"
#include "daemon/agent/calibration/calibration.h"
#include "daemon/agent/gpus/gpu_reading.h"
#include "daemon/agent/node/model.h"

namespace tierpilot::agent {

// A figure's name by Prometheus' conventions: "migrate_node0_to_node1_gb_per_s" is the gauge
// tierpilot_migrate_pair_bytes_per_second{from="node0",to="node1"}, as bytes and not as GB.
struct ExposedName {
  std::string name;
  Exposition::Labels labels;
  double scale = 1;  // what the value is multiplied with
  bool counter = false;
};
ExposedName exposed_name(const std::string& figure);

void expose(Exposition& page, const std::vector<MetricValue>& values);
// Latencies as a distribution, of the rounds since the daemon's start.
void expose_tiers(Exposition& page, const Calibration& calibration);
void expose_pool(Exposition& page, const PoolUsage& usage);
void expose_gpus(Exposition& page, const std::vector<GpuReading>& readings);

}  // namespace tierpilot::agent

// Where a simulation's tasks come from, as the command line names it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "policies/sim/cluster_spec.h"
#include "policies/sim/workload.h"

namespace tierpilot::sim {

struct WorkloadSource {
  // The tasks of one seed; a generator draws others for each, a trace has the same.
  std::function<Result<Workload>(const ClusterSpec& cluster, uint64_t seed)> make;
  std::optional<ClusterSpec> cluster;  // that the trace was taken on
};

// A generator's TOML file, or trace:KIND:FILES. kInvalid names the kinds there are.
Result<WorkloadSource> open_workload(const std::string& text);

}  // namespace tierpilot::sim

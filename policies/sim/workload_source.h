// Where a simulation's tasks come from, as the command line names it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/model/workload.h"
#include "policies/sim/trace/trace.h"

namespace tierpilot::sim {

struct WorkloadSource {
  // The tasks of one seed. A generator draws others for each; of a trace the tasks are the same,
  // and their data, where the trace tells none, is drawn anew.
  std::function<Result<Workload>(const ClusterSpec& cluster, uint64_t seed)> make;
  std::optional<ClusterSpec> cluster;   // that the trace was taken on
  std::optional<TraceSummary> summary;  // of a trace
};

// The text names a trace, not a generator's file.
bool is_trace(std::string_view text);

// A generator's TOML file, or trace:KIND:FILE with KIND philly, swf or history, or
// trace:openb:PODS,NODES. `options` are for traces. kInvalid names the kinds there are.
Result<WorkloadSource> open_workload(const std::string& text, const TraceOptions& options = {});

}  // namespace tierpilot::sim

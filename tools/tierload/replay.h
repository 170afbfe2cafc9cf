// Runs a workload on a cluster: registers its datasets, submits its tasks on time, waits for them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/cluster/connection.h"
#include "tools/tierload/summary.h"
#include "tools/tierload/workload.h"

namespace tierpilot::tierload {

// Homes go round the nodes in turn, so that every run starts alike. At least one node.
Status register_datasets(ClusterConnection& connection, const Workload& workload,
                         const std::vector<std::string>& nodes);
// Those that are not there any more are skipped.
Status remove_datasets(ClusterConnection& connection, const Workload& workload);

// Names of the nodes that are up. kUnavailable when there is none.
Result<std::vector<std::string>> nodes_up(ClusterConnection& connection);

struct ReplayProgress {
  size_t submitted = 0;
  size_t ended = 0;  // counted only after all have been submitted
};

struct ReplayResult {
  std::vector<TaskFacts> tasks;
  int64_t latest_submit_ms = 0;  // by how much the latest submit missed its time
};

// Open loop: a submit waits for its time and for nothing else. `tick` is called several times a
// second; an error from it, or from a submit, ends the replay (tasks that run go on).
Result<ReplayResult> replay(ClusterConnection& connection, const Workload& workload,
                            const std::string& program,
                            const std::function<Status(const ReplayProgress&)>& tick);

}  // namespace tierpilot::tierload

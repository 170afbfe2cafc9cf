// Whole lists, fetched page by page.
#pragma once

#include <functional>
#include <string>

#include "tools/cluster/connection.h"

namespace tierpilot {

// Making a dataset means writing all of its bytes: this much longer than other calls.
inline constexpr int64_t kDatasetAddMs = 600'000;
// Every byte of every copy is read.
inline constexpr int64_t kDatasetCheckMs = 6 * 3'600'000;

// By rising name.
Status for_each_node(ClusterConnection& connection,
                     const std::function<void(wire::NodeEntry::Reader)>& visit);

Status for_each_dataset(ClusterConnection& connection,
                        const std::function<void(wire::Dataset::Reader)>& visit);

struct TaskFilter {
  std::string state;        // empty: any
  uint64_t submission = 0;  // 0: any
  uint64_t after = 0;       // only tasks with a higher id
  bool ranks = false;       // for whoever shows them: those that are ranks of a gang, too
};
// By rising id.
Status for_each_unit(ClusterConnection& connection,
                     const std::function<void(wire::UnitEntry::Reader)>& visit);

Status for_each_task(ClusterConnection& connection, const TaskFilter& filter,
                     const std::function<void(wire::Task::Reader)>& visit);

// Tasks submitted within [from_ms, until_ms), as Cluster.historyTasks gives them. `visit` may stop
// it with an error.
Status for_each_past_task(ClusterConnection& connection, int64_t from_ms, int64_t until_ms,
                          const std::function<Status(wire::Task::Reader)>& visit);

}  // namespace tierpilot

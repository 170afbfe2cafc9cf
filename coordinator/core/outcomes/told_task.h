// What may be told of a task. An end that is not on disk yet, its own or that of a promise on
// trial, a power cut would undo: until then it goes on for everybody. Event loop thread only.
#pragma once

#include <optional>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

// `stored`: as it is on disk. Memory is ahead of that by the commits under way.
Task told_task(const ClusterState& state, Task stored);
// Nothing: there is none.
Result<std::optional<Task>> told_task(const ClusterState& state, uint64_t id);

}  // namespace tierpilot

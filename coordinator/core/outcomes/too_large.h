// What a task wrote, and no node could ever keep.
#pragma once

#include <string>

#include "coordinator/core/nodes/registry.h"
#include "coordinator/model.h"

namespace tierpilot {

// Why another try cannot help; empty: it may, or not all nodes that it may run on are known.
std::string too_large_for_all(const Registry& registry, const Task& task, const TaskExit& exit);

}  // namespace tierpilot

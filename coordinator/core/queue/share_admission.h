// What is checked of a task that asks for a share of a unit. Whether its promise can be made is
// asked later, see Intake.
#pragma once

#include <string>

#include "base/result.h"
#include "coordinator/core/nodes/registry.h"
#include "model/task_spec.h"

namespace tierpilot {

// kInvalid names what is wrong, of the task `who`.
Status check_share(const TaskSpec& spec, const std::string& who, const Registry& registry);

}  // namespace tierpilot

// What a submit must be to be accepted: everything is checked before anything is written.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "coordinator/core/data/catalog.h"
#include "coordinator/core/nodes/registry.h"
#include "coordinator/model.h"

namespace tierpilot {

inline constexpr size_t kMaxTasksPerSubmit = 10'000;

// The positions (in `specs`) of the tasks that each task depends on.
using Dependencies = std::vector<std::vector<size_t>>;

// Names every fault with the task it is in: an empty command, an unknown dataset or node, more
// units, memory or data than any node offers, an unknown or cyclic dependency. `leaving`: nodes
// that are being removed.
Result<Dependencies> admit(const std::vector<TaskSpec>& specs, const Catalog& catalog,
                           const Registry& registry, const std::set<std::string>& leaving = {});

}  // namespace tierpilot

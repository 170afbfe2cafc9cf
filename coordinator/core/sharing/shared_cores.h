// Cores that tasks share, as they are listed: by node, then by number.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/nodes/registry.h"

namespace tierpilot {

struct SharedCores {
  std::string id;
  const NodeRecord* node = nullptr;
  uint32_t number = 0;  // of its node's shared units

  const NodeFacts::SharedUnit& facts() const { return node->facts.shared_units[number]; }
};

// At most `most` behind the one that is called `after`, from the first on where that names none.
std::vector<SharedCores> shared_cores_after(const Registry& registry, const std::string& after,
                                            size_t most);

std::optional<SharedCores> find_shared_cores(const Registry& registry, const std::string& id);

}  // namespace tierpilot

// Versions that nobody needs any more: marked at once, removed when they are free.
#pragma once

#include <string>

#include "daemon/memory/pool/replicas/holdings.h"

namespace tierpilot {

class DoomedReplicas {
 public:
  explicit DoomedReplicas(Holdings& holdings) : holdings_(holdings) {}

  // Marks every version below `below`.
  void doom(const std::string& name, uint64_t below);
  void doom_one(const DatasetId& id);
  // Blocks. Removes those that are marked and free.
  void sweep();

 private:
  Holdings& holdings_;
};

}  // namespace tierpilot

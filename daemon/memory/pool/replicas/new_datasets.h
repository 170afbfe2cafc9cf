// Datasets that this node makes.
#pragma once

#include <set>
#include <string>

#include "daemon/memory/pool/replicas/holdings.h"
#include "daemon/memory/pool/replicas/new_content.h"
#include "daemon/memory/pool/replicas/pool_room.h"

namespace tierpilot {

class NewDatasets {
 public:
  NewDatasets(Holdings& holdings, PoolRoom& room) : holdings_(holdings), room_(room) {}

  // Blocks. Version 1 of a new dataset, in the slow tier, with this node as its home. kConflict:
  // there is one of this name.
  Result<ReplicaChange> create(const std::string& name, const CreateSource& source,
                               const CancelFlag& cancel);

 private:
  // `making_` has the name.
  Result<ReplicaChange> make(Holdings::Lock& lock, const std::string& name,
                             const NewContent& content, const CancelFlag& cancel);

  Holdings& holdings_;
  PoolRoom& room_;
  std::set<std::string> making_;  // their digests are not known yet; under the holdings' lock
};

}  // namespace tierpilot

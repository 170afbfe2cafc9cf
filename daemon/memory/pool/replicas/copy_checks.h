// Copies are read and held to their checksums.
#pragma once

#include "daemon/memory/pool/replicas/holdings.h"

namespace tierpilot {

class CopyChecks {
 public:
  explicit CopyChecks(Holdings& holdings) : holdings_(holdings) {}

  // Blocks. Reads what is here and compares; what is damaged goes. kNotFound: nothing is here.
  Result<ReplicaCheck> verify(const DatasetId& id, const CancelFlag& cancel);

 private:
  // Of one tier's copy, which goes if it is damaged. The entry is the caller's.
  Result<CopyState> check_copy(Holdings::Lock& lock, Replica& replica, PoolTier tier,
                               const CancelFlag& cancel);

  Holdings& holdings_;
};

}  // namespace tierpilot

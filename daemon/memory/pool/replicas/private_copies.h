// What becomes of private copies: the next version of their dataset, or nothing.
#pragma once

#include <vector>

#include "daemon/memory/pool/replicas/holdings.h"
#include "daemon/memory/pool/replicas/pool_room.h"
#include "daemon/memory/pool/replicas/private_copy.h"

namespace tierpilot {

class StagedVersion;

class PrivateCopies {
 public:
  PrivateCopies(Holdings& holdings, PoolRoom& room) : holdings_(holdings), room_(room) {}

  // Blocks. Turns the copies into the next version of their datasets, all of them or none (but for
  // a file that can be neither published nor removed), with this node as their home. Older versions
  // stay until they are dropped: the new one does not count before the coordinator has it on disk.
  // The copies are gone afterwards, whatever the result.
  Committed commit(const std::vector<PrivateCopy>& copies);
  // Blocks. Removes a private copy.
  void discard(const PrivateCopy& copy);
  // With the lock held.
  const CommitTotals& totals() const { return totals_; }

 private:
  Status publish(Holdings::Lock& lock, std::vector<StagedVersion>& all);

  Holdings& holdings_;
  PoolRoom& room_;
  CommitTotals totals_;  // under the lock of the holdings
};

}  // namespace tierpilot

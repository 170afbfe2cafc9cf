// Makes room in both tiers: eviction from the fast one, drops from the slow one. Counts what it
// moves.
#pragma once

#include "daemon/memory/pool/counters.h"
#include "daemon/memory/pool/replicas/holdings.h"

namespace tierpilot {

class PoolRoom {
 public:
  using Lock = Holdings::Lock;

  explicit PoolRoom(Holdings& holdings) : holdings_(holdings) {}

  // Take `bytes` of the tier, evicting or dropping others for it; the caller gives them back.
  // kExhausted, with the numbers, if too much must stay; nothing is taken after an error.
  Status make_fast(Lock& lock, uint64_t bytes, const CancelFlag& cancel, EvictionTally& tally);
  Status make_slow(Lock& lock, uint64_t bytes);
  // Blocks. As Pool::demote().
  Status demote(const DatasetId& id, const CancelFlag& cancel);
  // Copies a fast replica, whose entry is the caller's, to the slow tier. Its bytes there are taken
  // already; after an error they are given back.
  Status write_back(Lock& lock, Replica& replica, const CancelFlag& cancel);
  // With the lock held.
  EvictionTotals totals() const;

 private:
  Status evict(Lock& lock, const DatasetId& id, const CancelFlag& cancel, EvictionTally& tally);

  Holdings& holdings_;
  EvictionTotals totals_;  // under the lock of the holdings, as is the rate
  RateMeter rate_;
};

}  // namespace tierpilot

// What the pool holds and how full its tiers are: plain accounting without files, locks or clocks.
// Victims are chosen by LRU (least recently pinned or unpinned), see EvictionOrder.
//
// Two promises rest on it. Used bytes of the fast tier never exceed its budget: they are taken
// before a transfer starts. And a request that was admitted can always be served: pinned bytes
// never exceed the budget either, so throwing out all that is unpinned makes room enough.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/eviction_order.h"
#include "daemon/memory/pool/names.h"
#include "daemon/memory/pool/types.h"

namespace tierpilot {

struct Replica : TierReplica {
  DatasetId id;
  bool leaving = false;               // a transfer removes the fast one, whose bytes are still used
  bool arriving = false;              // a transfer makes one for nobody, and has taken its bytes
  ServeHow arrived = ServeHow::kHit;  // how it last came into the fast tier
  int64_t arrived_ns = 0;             // how long that took
};

class PoolLedger {
 public:
  PoolLedger(uint64_t fast_budget, uint64_t slow_budget) : fast(fast_budget), slow(slow_budget) {}

  TierAccount fast;
  TierAccount slow;
  EvictionOrder order;

  // Pointers and references stay good until the entry is erased.
  Replica* find(const DatasetId& id);
  // Finds the entry or makes one without any replica.
  Replica& entry(const DatasetId& id, uint64_t bytes);
  // Erases an entry that has no replica, no pin and no transfer.
  void erase_if_empty(const DatasetId& id);
  const std::map<DatasetId, Replica>& entries() const { return entries_; }

  uint64_t pinned_bytes() const { return pinned_bytes_; }
  bool can_pin(uint64_t bytes) const;
  void pin(const DatasetId& id, uint64_t bytes);
  void unpin(const DatasetId& id);
  // Private copies are not replicas: only their bytes are kept.
  void pin_private(uint64_t bytes) { pinned_bytes_ += bytes; }
  void unpin_private(uint64_t bytes) { pinned_bytes_ -= bytes; }

  // The next replica to leave the fast tier; `except` could not be evicted a moment ago.
  std::optional<DatasetId> fast_victim(const std::set<DatasetId>& except);
  // A transfer under way will yield room or a victim: waiting for it is worth it.
  bool fast_room_coming() const;
  // The next replica that may be dropped from the slow tier.
  std::optional<DatasetId> slow_victim();

  // Marks every version below `below`.
  void doom(const std::string& name, uint64_t below);
  std::optional<DatasetId> removable() const;
  // Any version at all, one in the making included.
  bool holds(const std::string& name) const;

 private:
  std::map<DatasetId, Replica> entries_;
  uint64_t pinned_bytes_ = 0;
};

}  // namespace tierpilot

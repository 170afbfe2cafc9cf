// Which node of a simulated cluster holds which dataset in which tier, with the accounts of the
// tiers (who has the newest versions: dataset_holders.h). The rules are those of the daemon's pool,
// and victims are chosen by the same EvictionOrder. Knows no time.
#pragma once

#include <boost/container/deque.hpp>
#include <cstdint>
#include <vector>

#include "base/eviction_order.h"
#include "base/large_pages.h"
#include "base/result.h"
#include "policies/sim/data/dataset_holders.h"
#include "policies/sim/data/replica.h"
#include "policies/sim/data/replica_table.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

class ReplicaStore {
 public:
  struct alignas(64) Cache {
    explicit Cache(const NodeGroup& group)
        : exclusive(group.exclusive_tiers),
          fast(group.fast_budget_bytes),
          slow(group.slow_budget_bytes) {}
    const bool exclusive;
    bool up = true;
    TierAccount fast, slow;
    EvictionOrder order;
    uint64_t pinned_bytes = 0;
  };

  ReplicaStore(const ClusterSpec& cluster, const Workload& workload);
  // Gives each dataset a home in a slow tier, in turn; kExhausted when there is no room.
  Status place_homes();

  Cache& cache(uint32_t node) { return caches_[node]; }
  const Cache& cache(uint32_t node) const { return caches_[node]; }
  const DatasetHolders& datasets() const { return datasets_; }

  // Asks for memory that will be touched.
  void expect(uint32_t node, uint32_t dataset) const {
    datasets_.expect(dataset);
    by_place_.expect(node, dataset);
  }
  // Of those versions that the node has an entry of; null: none.
  const Replica* newest(uint32_t node, uint32_t dataset) const {
    return by_place_.find(node, dataset);
  }
  // Null when the node has no entry of this version.
  Replica* find(uint32_t node, uint32_t dataset, uint32_t version);
  // Finds the entry or makes one without any tier.
  Replica& entry(uint32_t node, uint32_t dataset, uint32_t version);
  void pin(Replica& replica);
  // The replica may be gone afterwards.
  void unpin(Replica& replica);
  // Its bytes have been taken from the account before; dropping gives them back.
  void gain_fast(Replica& replica);
  void gain_slow(Replica& replica);
  void drop_fast(Replica& replica);
  void drop_slow(Replica& replica);
  // Removes what is doomed and free, and forgets what is empty: call when a use has ended.
  void settle(Replica& replica);
  // Takes `bytes` of the slow tier, dropping the least recently used for it; drops nothing when it
  // would not be enough.
  bool slow_room_possible(uint32_t node, uint64_t bytes) const;
  bool take_slow_room(uint32_t node, uint64_t bytes);
  // The next version, made at `node` out of room taken in its fast tier, and in its slow one unless
  // tiers are exclusive. Older versions go when nobody uses them.
  void publish(uint32_t node, uint32_t dataset);

  // Nothing may be pinned or busy there. Memory is lost; slow directories come back with the node.
  void node_failed(uint32_t node);
  void node_repaired(uint32_t node);

 private:
  void forget(Replica& replica);

  DatasetHolders datasets_;
  LargeVector<Cache> caches_;
  // Stay where they are.
  boost::container::deque<Replica, LargePages<Replica>,
                          boost::container::deque_options_t<boost::container::block_bytes<2 << 20>>>
      replicas_;
  std::vector<Replica*> free_;
  ReplicaTable<Replica> by_place_;  // the newest version that the node has an entry of
};

}  // namespace tierpilot::sim

// Which node of a simulated cluster holds which dataset in which tier, with the accounts of the
// tiers. The rules are those of the daemon's pool, and victims are chosen by the same
// EvictionOrder. Knows no time.
#pragma once

#include <array>
#include <boost/container/deque.hpp>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "base/eviction_order.h"
#include "base/large_pages.h"
#include "base/result.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica_table.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

inline constexpr uint32_t kNone = UINT32_MAX;

enum class ServeHow : uint8_t { kHit, kPromotion, kFetch };

// One version of a dataset on one node; `busy` while a transfer owns its files.
struct Replica : TierReplica {
  uint32_t dataset = 0;
  uint32_t node = kNone;
  uint32_t version = 0;
  uint32_t holder = kNone;            // place in the list of holders
  ServeHow arrived = ServeHow::kHit;  // how it last came into the fast tier
  int64_t arrived_ns = 0;             // how long that took
};

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
  uint64_t bytes(uint32_t dataset) const { return entries_[dataset].bytes; }
  uint32_t version(uint32_t dataset) const { return entries_[dataset].version; }
  // Of the newest version, on nodes that are up. What is asked of all of them is here: popular
  // datasets have thousands.
  struct Holder {
    Replica* replica;
    uint32_t node;
    bool fast;
  };
  using Holders =
      boost::container::small_vector<Holder, 1>;  // most datasets have one, in their home
  const Holders& holders(uint32_t dataset) const { return entries_[dataset].holders; }
  // No node has the newest version, not even one that is down.
  bool lost(uint32_t dataset) const {
    return entries_[dataset].holders.empty() && entries_[dataset].copies_down == 0;
  }
  // Changes when a dataset has lost its last holder or has one again.
  uint64_t availability() const { return availability_; }
  // Where another node would read it for the task, best first by source_rank(). Empty when no
  // node that is up holds this version.
  struct Sources {
    std::array<Holder, 4> best{};  // more are not asked
    size_t count = 0;

    std::span<const Holder> all() const { return std::span(best).first(count); }
  };
  Sources sources(uint32_t dataset, uint32_t version, uint32_t reader, uint32_t task) const;

  // Ask for memory that will be touched.
  void expect(uint32_t dataset) const { prefetch(entries_[dataset]); }
  void expect(uint32_t node, uint32_t dataset) const {
    prefetch(entries_[dataset]);
    by_place_.expect(node, dataset);
  }
  void expect_holders(uint32_t dataset) const { prefetch(*entries_[dataset].holders.data()); }
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
  struct alignas(64) Entry {
    uint64_t bytes = 0;
    uint32_t version = 1;
    uint32_t copies_down = 0;  // of this version, on nodes that are down
    Holders holders;
  };

  void list(Replica& replica);
  void unlist(Replica& replica);
  void forget(Replica& replica);

  LargeVector<Entry> entries_;
  uint64_t availability_ = 0;
  LargeVector<Cache> caches_;
  // Stay where they are.
  boost::container::deque<Replica, LargePages<Replica>,
                          boost::container::deque_options_t<boost::container::block_bytes<2 << 20>>>
      replicas_;
  std::vector<Replica*> free_;
  ReplicaTable<Replica> by_place_;  // the newest version that the node has an entry of
};

}  // namespace tierpilot::sim

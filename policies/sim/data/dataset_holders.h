// The datasets of a cluster: their sizes, their newest versions, and which nodes have these.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/large_pages.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica.h"
#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

class DatasetHolders {
 public:
  // Of the newest version, on nodes that are up. What is asked of all of them is here: popular
  // datasets have thousands.
  struct Holder {
    Replica* replica;
    uint32_t node;
    bool fast;
  };
  using Holders =
      boost::container::small_vector<Holder, 1>;  // most datasets have one, in their home
  struct Sources {
    std::array<Holder, 4> best{};  // more are not asked
    size_t count = 0;

    std::span<const Holder> all() const { return std::span(best).first(count); }
  };

  explicit DatasetHolders(const Workload& workload);

  uint32_t count() const { return static_cast<uint32_t>(entries_.size()); }
  uint64_t bytes(uint32_t dataset) const { return entries_[dataset].bytes; }
  uint32_t version(uint32_t dataset) const { return entries_[dataset].version; }
  const Holders& holders(uint32_t dataset) const { return entries_[dataset].holders; }
  // No node has the newest version, not even one that is down.
  bool lost(uint32_t dataset) const {
    return entries_[dataset].holders.empty() && entries_[dataset].copies_down == 0;
  }
  // Changes when a dataset has lost its last holder or has one again.
  uint64_t availability() const { return availability_; }
  // Where another node would read it for the task, best first by source_rank(). Empty when no
  // node that is up holds this version.
  Sources sources(uint32_t dataset, uint32_t version, uint32_t reader, uint32_t task) const;

  // The replica is in a tier of a node that is up. Nothing, where it is in none or not the newest.
  void list(Replica& replica);
  void unlist(Replica& replica);
  // It is in a slow tier only.
  void left_fast(const Replica& replica) {
    if (replica.holder != kNone) entries_[replica.dataset].holders[replica.holder].fast = false;
  }
  // The replica's node has failed, and has it still; or is back, and has it.
  void node_down(const Replica& replica) {
    Entry& entry = entries_[replica.dataset];
    entry.copies_down += replica.slow() && replica.version == entry.version;
  }
  void node_up(const Replica& replica) {
    Entry& entry = entries_[replica.dataset];
    if (replica.version == entry.version) --entry.copies_down;
  }
  // There is a newer one, which is to be listed at once: those who had the last are given, and are
  // listed no longer.
  Holders begin_version(uint32_t dataset);

  // Ask for memory that will be touched.
  void expect(uint32_t dataset) const { prefetch(entries_[dataset]); }
  void expect_holders(uint32_t dataset) const { prefetch(*entries_[dataset].holders.data()); }

 private:
  struct alignas(64) Entry {
    uint64_t bytes = 0;
    uint32_t version = 1;
    uint32_t copies_down = 0;  // of this version, on nodes that are down
    Holders holders;
  };

  LargeVector<Entry> entries_;
  uint64_t availability_ = 0;
};

}  // namespace tierpilot::sim

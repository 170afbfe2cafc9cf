// Keeps datasets on as many nodes as they are to be on, so that one may be lost: orders copies in
// the background, and lets go of those that are too many. Event loop thread only.
#pragma once

#include <map>
#include <string>

#include "coordinator/core/data/copy_orders.h"

namespace tierpilot {

class Replicator {
 public:
  Replicator(ClusterState& state, CopyOrders& orders)
      : state_(state), orders_(orders), began_ns_(state.clock.boot_ns()) {}

  // Several times a second; looks at all datasets once a second.
  void tick();
  // Datasets that are on fewer nodes than they are to be, as the last look found.
  size_t short_of_copies() const { return short_of_copies_; }
  // Copies that are missing are made without waiting for nodes that may come back with theirs.
  void hurry(const std::string& dataset);

 private:
  // unknown: the coordinator was restarted.
  enum class Was { kUnknown, kSafe, kShort };
  // Of one dataset: whether its current version was on enough nodes, and since when it is not.
  struct Standing {
    uint64_t version = 0;
    Was was = Was::kShort;
    int64_t short_since_ns = 0;
    std::string lets_go;  // the node that was asked to keep it no more
    int64_t ask_again_ns = 0;
  };

  void begin();
  Standing& standing_of(const Dataset& dataset);
  void look_at(const Catalog::Entry& entry, int64_t now_ns);
  void mend_homes(const Catalog::Entry& entry);
  bool is_due(const Catalog::Entry& entry, uint32_t kept, Standing& standing, int64_t now_ns);
  void order_copy(const Catalog::Entry& entry);
  void let_go(const Catalog::Entry& entry, Standing& standing, int64_t now_ns);
  // Besides the home; empty: none can be asked.
  std::string with_least_room(const Catalog::Entry& entry) const;
  // A home that is lost is the home no more once another node keeps the version.
  void move_home(const Catalog::Entry& entry, const std::string& lets_go = {});

  ClusterState& state_;
  CopyOrders& orders_;
  int64_t began_ns_;
  uint32_t unheard_nodes_ = 0;  // at this look
  std::map<std::string, Standing> standings_;
  int64_t next_look_ns_ = 0;
  size_t short_of_copies_ = 0;
};

// Nodes that keep the current version and are not lost.
uint32_t nodes_that_keep(const Catalog::Entry& entry);
// What was damaged on its disk has not been written there again.
bool is_home_in_memory_only(const ReplicaState& replica);

}  // namespace tierpilot

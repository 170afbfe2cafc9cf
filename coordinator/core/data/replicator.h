// Keeps datasets on as many nodes as they are to be on, so that one may be lost: orders copies in
// the background, and lets go of those that are too many. Event loop thread only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

class Replicator {
 public:
  explicit Replicator(ClusterState& state) : state_(state) {}

  // Several times a second; looks at all datasets once a second.
  void tick();
  // Datasets that are on fewer nodes than they are to be, as the last look found.
  size_t short_of_copies() const { return short_of_copies_; }
  // Copies that are missing are made without waiting for nodes that may come back with theirs.
  void hurry(const std::string& dataset);

 private:
  // Of one dataset: whether its current version was on enough nodes, and since when it is not.
  struct Standing {
    uint64_t version = 0;
    bool was_safe = false;
    int64_t short_since_ns = 0;
  };
  using Copy = std::pair<std::string, std::string>;  // dataset, node

  void look_at(const Catalog::Entry& entry, int64_t now_ns);
  void mend_homes(const Catalog::Entry& entry, int64_t now_ns);
  bool is_due(const Catalog::Entry& entry, uint32_t kept, int64_t now_ns);
  void order_copy(const Catalog::Entry& entry, int64_t now_ns);
  void let_go(const Catalog::Entry& entry);
  // A home that is lost is the home no more once another node keeps the version.
  void move_home(const Catalog::Entry& entry);
  // Null: none has room, or is asked for too much already.
  NodeRecord* choose_node(const Catalog::Entry& entry, int64_t now_ns);
  bool is_busy(const std::string& node) const;
  bool is_under_way(const std::string& dataset) const;

  ClusterState& state_;
  std::map<std::string, Standing> standings_;
  std::set<Copy> under_way_;
  std::map<Copy, int64_t> not_before_ns_;  // after a copy that failed, or a home that was asked for
  int64_t next_look_ns_ = 0;
  size_t short_of_copies_ = 0;
};

// Nodes that keep the current version and are not lost.
uint32_t nodes_that_keep(const Catalog::Entry& entry);
// What was damaged on its disk has not been written there again.
bool is_home_in_memory_only(const ReplicaState& replica);
// For `reader`: who is up and has the current version; best first.
DatasetNeed need_of(ClusterState& state, const Catalog::Entry& entry, const std::string& reader);

}  // namespace tierpilot

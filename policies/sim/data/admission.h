// Which requests a node works on: those whose pins fit into its fast tier wait for a mover.
#pragma once

#include <cstdint>

#include "base/large_pages.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/data/requests.h"
#include "policies/sim/model/cluster_spec.h"

namespace tierpilot::sim {

class Admission {
 public:
  Admission(const ClusterSpec& cluster, ReplicaStore& store, Requests& requests);

  void enqueue(uint32_t id);
  // It is abandoned.
  void leave(uint32_t id);
  // Lets those go on that can at the node.
  void begin_possible(uint32_t node);
  void mover_free(uint32_t node) { --nodes_[node].busy; }
  // Takes the request's pins back, and the room of what it would have written.
  void give_back(DataRequest& request);

  // Asks for memory that will be touched.
  void expect(uint32_t node) const { prefetch(nodes_[node]); }

 private:
  struct Node {
    uint32_t movers = 0, busy = 0;
    RequestLine for_pins, for_mover;
  };
  bool admit(DataRequest& request);

  ReplicaStore& store_;
  Requests& requests_;
  LargeVector<Node> nodes_;
};

}  // namespace tierpilot::sim

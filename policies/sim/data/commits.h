// A node's settler: what ended tasks have written is put into the slow tier, one task after the
// other (as daemon/memory/pool/replicas/staged_version.h).
#pragma once

#include <cstdint>
#include <optional>

#include "base/large_pages.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/data/requests.h"
#include "policies/sim/data/transfers.h"

namespace tierpilot::sim {

class Commits {
 public:
  Commits(size_t nodes, ReplicaStore& store, Requests& requests, Transfers& transfers);

  // The request's task has ended.
  void enqueue(uint32_t id) {
    requests_[id].step = ServingStep::kSettling;
    requests_.enqueue(nodes_[requests_[id].node].line, id);
  }
  struct Settled {
    uint32_t id;
    bool committed;  // false: there was no room for what it wrote
  };
  bool may_begin(uint32_t node) const { return !nodes_[node].busy && !nodes_[node].line.empty(); }
  // The settler turns to the next request; gives it where it takes no time.
  std::optional<Settled> begin_next(int64_t now_ns, uint32_t node);
  // What the request wrote is written.
  void over(uint32_t node) { nodes_[node].busy = false; }
  // Makes what the request wrote the newest versions.
  void publish(DataRequest& request);
  // It is abandoned.
  void leave(uint32_t id);

  // Asks for memory that will be touched.
  void expect(uint32_t node) const { prefetch(nodes_[node]); }

 private:
  struct Node {
    RequestLine line;
    bool busy = false;
  };

  ReplicaStore& store_;
  Requests& requests_;
  Transfers& transfers_;
  LargeVector<Node> nodes_;
};

}  // namespace tierpilot::sim

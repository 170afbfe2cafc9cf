// Room in the fast tiers of nodes: what was used least recently leaves, and is written back where
// it has no slow copy. Where nothing may leave, requests wait for those at the node that are under
// way.
#pragma once

#include <cstdint>
#include <utility>

#include "base/large_pages.h"
#include "policies/sim/data/data_client.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/data/requests.h"
#include "policies/sim/data/transfers.h"

namespace tierpilot::sim {

class FastRoom {
 public:
  FastRoom(size_t nodes, ReplicaStore& store, Requests& requests, Transfers& transfers,
           DataClient& client);

  // For the item under way.
  ItemProgress take(int64_t now_ns, uint32_t id, uint64_t bytes);
  // The request's victim has been written back, or freed.
  void evicted(DataRequest& request);
  // It is to stay.
  void spare_victim(DataRequest& request) {
    if (request.victim) spare(request, *std::exchange(request.victim, nullptr));
  }

  // Until something at the node has ended.
  ItemProgress wait(uint32_t id);
  void wake(uint32_t node) { requests_.go_on(waiting_[node]); }
  void leave(uint32_t id) { requests_.leave(waiting_[requests_[id].node], id); }
  // The request needs its replica no longer for itself.
  void release_owned(DataRequest& request) {
    if (request.owned) release(*std::exchange(request.owned, nullptr));
  }

  // Asks for memory that will be touched.
  void expect(uint32_t node) const { prefetch(waiting_[node]); }

 private:
  ItemProgress evict(int64_t now_ns, uint32_t id, Replica& victim);
  void spare(const DataRequest& request, Replica& victim);
  void release(Replica& owned);

  ReplicaStore& store_;
  Requests& requests_;
  Transfers& transfers_;
  DataClient& client_;
  LargeVector<RequestLine> waiting_;  // by node
};

}  // namespace tierpilot::sim

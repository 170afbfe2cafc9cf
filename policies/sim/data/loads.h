// Brings one dataset after the other into fast memory: room, then a hit, a promotion, a fetch or,
// for one that will be written, a copy (as daemon/memory/pool/replicas/loader.h).
#pragma once

#include <cstdint>

#include "policies/sim/data/fast_room.h"
#include "policies/sim/data/read_turns.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/data/requests.h"
#include "policies/sim/data/transfers.h"

namespace tierpilot::sim {

class Loads {
 public:
  Loads(ReplicaStore& store, Requests& requests, Transfers& transfers, ReadTurns& turns,
        FastRoom& room);

  // The request goes on with its next item.
  ItemProgress go_on(int64_t now_ns, uint32_t id);
  // What the request's transfer was to bring in is there.
  void arrived(int64_t now_ns, DataRequest& request);

 private:
  ItemProgress read(int64_t now_ns, uint32_t id, DataItem& item);
  ItemProgress copy_for_writing(int64_t now_ns, uint32_t id, DataItem& item);
  ItemProgress load(int64_t now_ns, uint32_t id, const DataItem& item);
  ItemProgress fetch(int64_t now_ns, uint32_t id, const DataItem& item);
  ItemProgress fetch_from(int64_t now_ns, uint32_t id, const Replica& source);

  ReplicaStore& store_;
  Requests& requests_;
  Transfers& transfers_;
  ReadTurns& turns_;
  FastRoom& room_;
};

}  // namespace tierpilot::sim

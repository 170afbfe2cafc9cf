// As daemon/memory/pool/replicas/pool_room.h.
#include "policies/sim/data/fast_room.h"

namespace tierpilot::sim {

FastRoom::FastRoom(size_t nodes, ReplicaStore& store, Requests& requests, Transfers& transfers,
                   DataClient& client)
    : store_(store), requests_(requests), transfers_(transfers), client_(client), waiting_(nodes) {}

ItemProgress FastRoom::wait(uint32_t id) {
  requests_.enqueue(waiting_[requests_[id].node], id);
  return ItemProgress::kUnderWay;
}

ItemProgress FastRoom::take(int64_t now_ns, uint32_t id, uint64_t bytes) {
  DataRequest& request = requests_[id];
  if (request.room_taken) return ItemProgress::kDone;
  auto& cache = store_.cache(request.node);
  while (!cache.fast.fits(bytes)) {
    TierReplica* victim = cache.order.fast_victim([&](const TierReplica& replica) {
      // Only a move into an exclusive slow tier can lack room: its home cannot be dropped.
      return replica.home() && !replica.slow() &&
             !store_.slow_room_possible(request.node, replica.bytes);
    });
    if (!victim) return transfers_.any_under_way(request.node) ? wait(id) : ItemProgress::kFailed;
    const auto progress = evict(now_ns, id, static_cast<Replica&>(*victim));
    if (progress != ItemProgress::kDone) return progress;
  }
  cache.fast.take(bytes);
  client_.room_changed(request.node);
  request.room_taken = true;
  return ItemProgress::kDone;
}

ItemProgress FastRoom::evict(int64_t now_ns, uint32_t id, Replica& victim) {
  DataRequest& request = requests_[id];
  const uint32_t node = request.node;
  const bool written = !victim.slow() && store_.take_slow_room(node, victim.bytes);
  request.victim = &victim;
  request.writes_back = written;
  victim.busy = true;
  if (written) {
    request.service.evicted_written_bytes += victim.bytes;
    request.flow = transfers_.write_back(now_ns, id, node, victim.bytes);
    return ItemProgress::kUnderWay;
  }
  if (!transfers_.frees_at_once(node)) {
    request.flow = transfers_.free(now_ns, id, node, victim.bytes);
    return ItemProgress::kUnderWay;
  }
  evicted(request);
  return ItemProgress::kDone;
}

void FastRoom::evicted(DataRequest& request) {
  Replica& victim = *std::exchange(request.victim, nullptr);
  if (request.writes_back) store_.gain_slow(victim);
  victim.busy = false;
  if (victim.pins == 0) {
    request.service.evicted_bytes += victim.bytes;
    store_.drop_fast(victim);
  } else if (victim.slow() && store_.cache(victim.node).exclusive) {
    store_.drop_slow(victim);  // pinned in the meantime: it stays
  }
  store_.settle(victim);
  client_.room_changed(request.node);
  wake(request.node);
}

void FastRoom::spare(const DataRequest& request, Replica& victim) {
  if (request.writes_back) store_.cache(request.node).slow.give(victim.bytes);
  victim.busy = false;
  store_.settle(victim);
}

void FastRoom::release(Replica& owned) {
  const uint32_t node = owned.node;  // it may be gone afterwards
  owned.busy = false;
  store_.settle(owned);
  wake(node);
}

}  // namespace tierpilot::sim

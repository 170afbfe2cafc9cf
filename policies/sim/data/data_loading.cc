// One item of a request: room in the fast tier, then a hit, a promotion, a fetch or a copy (as
// daemon/memory/pool/load.cc and evict.cc).
#include "policies/sim/data/data_plane.h"

namespace tierpilot::sim {

DataPlane::Progress DataPlane::read(uint32_t id, Item& item) {
  Request& request = requests_[id];
  Replica& replica = *item.replica;
  if (replica.fast()) {
    if (item.joined)
      count(request, replica.arrived, replica.bytes, replica.arrived_ns);
    else
      count(request, ServeHow::kHit, replica.bytes, 0);
    return Progress::kDone;
  }
  if (replica.busy && request.owned != &replica) {
    item.joined = true;
    return wait_idle(id);
  }
  request.owned = &replica;
  replica.busy = true;
  if (const auto room = make_room(id, replica.bytes); room != Progress::kDone) return room;
  request.how = replica.slow() ? ServeHow::kPromotion : ServeHow::kFetch;
  return load(id, item);
}

DataPlane::Progress DataPlane::copy_for_writing(uint32_t id, Item& item) {
  Request& request = requests_[id];
  if (const auto room = make_room(id, store_.bytes(item.dataset)); room != Progress::kDone)
    return room;
  // Looked for only now: making room may have evicted the version that is to be copied.
  Replica* base = store_.find(request.node, item.dataset, item.version);
  if (base && base->busy) {
    if (!request.has_turn) return wait_idle(id);
    base = nullptr;  // who loads it may stand in line for this very turn
  }
  request.how = ServeHow::kFetch;
  if (base && (base->fast() || base->slow())) {
    base->busy = true;
    request.owned = base;
    request.how = base->fast() ? ServeHow::kHit : ServeHow::kPromotion;
  }
  return load(id, item);
}

DataPlane::Progress DataPlane::make_room(uint32_t id, uint64_t bytes) {
  Request& request = requests_[id];
  if (request.room_taken) return Progress::kDone;
  auto& cache = store_.cache(request.node);
  while (!cache.fast.fits(bytes)) {
    TierReplica* victim = cache.order.fast_victim([&](const TierReplica& replica) {
      // Only a move into an exclusive slow tier can lack room: its home cannot be dropped.
      return replica.home() && !replica.slow() &&
             !store_.slow_room_possible(request.node, replica.bytes);
    });
    if (!victim) return nodes_[request.node].transfers > 0 ? wait_idle(id) : Progress::kFailed;
    if (const auto done = evict(id, static_cast<Replica&>(*victim)); done != Progress::kDone)
      return done;
  }
  cache.fast.take(bytes);
  client_.room_changed(request.node);
  request.room_taken = true;
  return Progress::kDone;
}

DataPlane::Progress DataPlane::evict(uint32_t id, Replica& victim) {
  Request& request = requests_[id];
  const bool written = !victim.slow() && store_.take_slow_room(request.node, victim.bytes);
  const Node& node = nodes_[request.node];
  const auto bytes = static_cast<double>(victim.bytes);
  request.victim = &victim;
  request.writes_back = written;
  victim.busy = true;
  if (written) {
    request.service.evicted_written_bytes += victim.bytes;
    start_flow(id, bytes * (1 + kind(node).freed_as_written) + kind(node).evict_start_bytes,
               {node.link(kSlowWrite)});
    return Progress::kUnderWay;
  }
  if (kind(node).freed_as_copied > 0) {
    start_flow(id, bytes * kind(node).freed_as_copied, {node.link(kMemory)});
    return Progress::kUnderWay;
  }
  evicted(request);
  return Progress::kDone;
}

void DataPlane::evicted(Request& request) {
  Replica& victim = *std::exchange(request.victim, nullptr);
  victim.busy = false;
  if (victim.pins == 0) {
    request.service.evicted_bytes += victim.bytes;
    store_.drop_fast(victim);
  } else if (victim.slow() && store_.cache(victim.node).exclusive) {
    store_.drop_slow(victim);  // pinned in the meantime: it stays
  }
  store_.settle(victim);
  client_.room_changed(request.node);
  wake_idle(nodes_[request.node]);
}

DataPlane::Progress DataPlane::load(uint32_t id, const Item& item) {
  Request& request = requests_[id];
  const Node& here = nodes_[request.node];
  if (request.source == kNone) request.loading_ns = now_ns_;
  if (request.how == ServeHow::kFetch) return fetch(id, item);
  // A copy has come to be here while it waited to read one elsewhere.
  if (request.has_turn) pass_turn(request);
  const auto bytes = static_cast<double>(store_.bytes(item.dataset));
  if (request.how == ServeHow::kHit)
    start_flow(id, bytes, {here.link(kMemory)});
  else
    start_flow(id, bytes + kind(here).promote_start_bytes, {here.link(kSlowRead)});
  return Progress::kUnderWay;
}

void DataPlane::loaded(Request& request) {
  const Item& item = request.items[request.next];
  const int64_t took_ns = now_ns_ - request.loading_ns;
  count(request, request.how, store_.bytes(item.dataset), took_ns);
  if (request.has_turn) {
    const uint32_t source = request.source;
    pass_turn(request);
    if (!item.write) send_to_copy(source, request.node, item);
  }
  if (!item.write) {
    Replica& replica = *item.replica;
    store_.gain_fast(replica);
    replica.arrived = request.how;
    replica.arrived_ns = took_ns;
    if (replica.slow() && store_.cache(replica.node).exclusive) store_.drop_slow(replica);
  }
  release_owned(request);
  ++request.next;
  request.room_taken = false;
}

void DataPlane::release_owned(Request& request) {
  if (!request.owned) return;
  Replica& owned = *std::exchange(request.owned, nullptr);
  owned.busy = false;
  store_.settle(owned);
  wake_idle(nodes_[request.node]);
}

void DataPlane::count(Request& request, ServeHow how, uint64_t bytes, int64_t took_ns) {
  if (how == ServeHow::kFetch) request.service.fetch_ns += took_ns;
  (how == ServeHow::kHit         ? request.service.hit_bytes
   : how == ServeHow::kPromotion ? request.service.promoted_bytes
                                 : request.service.fetched_bytes) += bytes;
}

}  // namespace tierpilot::sim

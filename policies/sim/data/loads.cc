#include "policies/sim/data/loads.h"

#include <algorithm>

namespace tierpilot::sim {
namespace {

void count(Service& service, ServeHow how, uint64_t bytes, int64_t took_ns) {
  if (how == ServeHow::kFetch) service.fetch_ns += took_ns;
  (how == ServeHow::kHit         ? service.hit_bytes
   : how == ServeHow::kPromotion ? service.promoted_bytes
                                 : service.fetched_bytes) += bytes;
}

}  // namespace

Loads::Loads(ReplicaStore& store, Requests& requests, Transfers& transfers, ReadTurns& turns,
             FastRoom& room)
    : store_(store), requests_(requests), transfers_(transfers), turns_(turns), room_(room) {}

inline ItemProgress Loads::read(int64_t now_ns, uint32_t id, DataItem& item) {
  DataRequest& request = requests_[id];
  Replica& replica = *item.replica;
  if (replica.fast()) {
    if (item.joined)
      count(request.service, replica.arrived, replica.bytes, replica.arrived_ns);
    else
      count(request.service, ServeHow::kHit, replica.bytes, 0);
    return ItemProgress::kDone;
  }
  if (replica.busy && request.owned != &replica) {
    item.joined = true;
    return room_.wait(id);
  }
  request.owned = &replica;
  replica.busy = true;
  const auto room = room_.take(now_ns, id, replica.bytes);
  if (room != ItemProgress::kDone) return room;
  request.how = replica.slow() ? ServeHow::kPromotion : ServeHow::kFetch;
  return load(now_ns, id, item);
}

ItemProgress Loads::copy_for_writing(int64_t now_ns, uint32_t id, DataItem& item) {
  DataRequest& request = requests_[id];
  const auto room = room_.take(now_ns, id, store_.datasets().bytes(item.dataset));
  if (room != ItemProgress::kDone) return room;
  // Looked for only now: making room may have evicted the version that is to be copied.
  Replica* base = store_.find(request.node, item.dataset, item.version);
  if (base && base->busy) {
    if (!request.has_turn) return room_.wait(id);
    base = nullptr;  // who loads it may stand in line for this very turn
  }
  request.how = ServeHow::kFetch;
  if (base && (base->fast() || base->slow())) {
    base->busy = true;
    request.owned = base;
    request.how = base->fast() ? ServeHow::kHit : ServeHow::kPromotion;
  }
  return load(now_ns, id, item);
}

ItemProgress Loads::load(int64_t now_ns, uint32_t id, const DataItem& item) {
  DataRequest& request = requests_[id];
  if (request.source == kNone) request.loading_ns = now_ns;
  if (request.how == ServeHow::kFetch) return fetch(now_ns, id, item);
  // A copy has come to be here while it waited to read one elsewhere.
  if (request.has_turn) turns_.pass(request);
  const uint64_t bytes = store_.datasets().bytes(item.dataset);
  request.flow = request.how == ServeHow::kHit
                     ? transfers_.copy(now_ns, id, request.node, bytes)
                     : transfers_.promote(now_ns, id, request.node, bytes);
  return ItemProgress::kUnderWay;
}

ItemProgress Loads::fetch(int64_t now_ns, uint32_t id, const DataItem& item) {
  DataRequest& request = requests_[id];
  if (request.has_turn) {
    const Replica* held = store_.find(request.source, item.dataset, item.version);
    if (held && (held->fast() || held->slow())) return fetch_from(now_ns, id, *held);
    turns_.pass(request);
  }
  request.source = kNone;
  const auto found =
      store_.datasets().sources(item.dataset, item.version, request.node, request.task);
  const auto sources = found.all();
  if (sources.empty()) return ItemProgress::kFailed;
  const auto free = std::find_if(sources.begin(), sources.end(),
                                 [&](const auto& source) { return turns_.any_left(source.node); });
  if (free != sources.end()) {
    turns_.take(request, free->node);
    return fetch_from(now_ns, id, *free->replica);
  }
  turns_.wait(id, sources.front().node);
  return ItemProgress::kUnderWay;
}

ItemProgress Loads::fetch_from(int64_t now_ns, uint32_t id, const Replica& source) {
  requests_[id].flow = transfers_.fetch(now_ns, id, requests_[id].node, source);
  return ItemProgress::kUnderWay;
}

ItemProgress Loads::go_on(int64_t now_ns, uint32_t id) {
  DataRequest& request = requests_[id];
  DataItem& item = request.items[request.next];
  return item.write ? copy_for_writing(now_ns, id, item) : read(now_ns, id, item);
}

void Loads::arrived(int64_t now_ns, DataRequest& request) {
  const DataItem& item = request.items[request.next];
  const int64_t took_ns = now_ns - request.loading_ns;
  count(request.service, request.how, store_.datasets().bytes(item.dataset), took_ns);
  if (request.has_turn) {
    const uint32_t source = request.source;
    turns_.pass(request);
    if (!item.write) turns_.send_to_copy(source, request.node, item);
  }
  if (!item.write) {
    Replica& replica = *item.replica;
    store_.gain_fast(replica);
    replica.arrived = request.how;
    replica.arrived_ns = took_ns;
    if (replica.slow() && store_.cache(replica.node).exclusive) store_.drop_slow(replica);
  }
  room_.release_owned(request);
  ++request.next;
  request.room_taken = false;
}

}  // namespace tierpilot::sim

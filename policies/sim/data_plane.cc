#include "policies/sim/data_plane.h"

#include <algorithm>

namespace tierpilot::sim {

DataPlane::DataPlane(const ClusterSpec& cluster, const Workload& workload, ReplicaStore& store,
                     EventQueue& events, Client& client)
    : workload_(workload),
      store_(store),
      flows_(events),
      client_(client),
      request_of_(workload.tasks.size(), kNone) {
  for (const NodeGroup& group : cluster.groups) {
    Node node;
    node.movers = group.movers;
    for (uint32_t i = 0; i < group.count; ++i) {
      // Processes of one machine share its memory and disk.
      if (i == 0 || group.shared_cores == 0) {
        node.slow_read = flows_.add_link(group.tiers.promote_bytes_per_s);
        node.slow_write = flows_.add_link(group.tiers.evict_bytes_per_s);
        node.memory = flows_.add_link(group.tiers.fast_copy_bytes_per_s);
        node.uplink = flows_.add_link(group.link_bytes_per_s);
        node.downlink = flows_.add_link(group.link_bytes_per_s);
      }
      nodes_.push_back(node);
      link_latency_bytes_.push_back(group.link_latency_s * group.link_bytes_per_s);
    }
  }
}

uint32_t DataPlane::new_request() {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(requests_.size()));
    requests_.emplace_back();
  }
  const uint32_t id = free_.back();
  free_.pop_back();
  // The list of items keeps its memory.
  auto items = std::move(requests_[id].items);
  items.clear();
  requests_[id] = Request{};
  requests_[id].items = std::move(items);
  return id;
}

void DataPlane::free_request(uint32_t id) {
  request_of_[requests_[id].task] = kNone;
  free_.push_back(id);
}

void DataPlane::ask(uint32_t task, uint32_t node) {
  const uint32_t id = new_request();
  Request& request = requests_[id];
  request.task = task;
  request.node = node;
  request_of_[task] = id;
  for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task]))
    request.items.push_back({use.dataset, store_.version(use.dataset), use.write});
}

void DataPlane::serve(int64_t now_ns, uint32_t task) {
  now_ns_ = now_ns;
  const uint32_t id = request_of_[task];
  Request& request = requests_[id];
  request.service.asked_ns = now_ns;
  nodes_[request.node].pin_waiters.push_back(id);
  begin_possible(request.node);
  run_ready();
}

bool DataPlane::admit(Request& request) {
  auto& cache = store_.cache(request.node);
  uint64_t need = 0;
  for (const Item& item : request.items) {
    const Replica* replica = store_.find(request.node, item.dataset, item.version);
    if (item.write || !replica || replica->pins == 0) need += store_.bytes(item.dataset);
  }
  if (cache.pinned_bytes + need > cache.fast.budget()) return false;
  for (Item& item : request.items) {
    if (item.write) {
      cache.pinned_bytes += store_.bytes(item.dataset);
    } else {
      item.replica = &store_.entry(request.node, item.dataset, item.version);
      // An entry made anew for a version that has been overwritten goes with its last use.
      item.replica->doomed = item.version != store_.version(item.dataset);
      store_.pin(*item.replica);
    }
  }
  request.admitted = true;
  return true;
}

void DataPlane::begin_possible(uint32_t index) {
  Node& node = nodes_[index];
  auto& waiting = node.pin_waiters;
  size_t admitted = 0;
  while (admitted < waiting.size() && admit(requests_[waiting[admitted]]))
    node.mover_waiters.push_back(waiting[admitted++]);
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<ptrdiff_t>(admitted));

  auto& queue = node.mover_waiters;
  const size_t begun = std::min<size_t>(queue.size(), node.movers - node.movers_busy);
  for (size_t i = 0; i < begun; ++i) {
    requests_[queue[i]].step = Step::kWorking;
    ready_.push_back(queue[i]);
  }
  node.movers_busy += static_cast<uint32_t>(begun);
  queue.erase(queue.begin(), queue.begin() + static_cast<ptrdiff_t>(begun));
}

void DataPlane::run_ready() {
  // advance() adds to the list.
  for (size_t i = 0; i < ready_.size(); ++i) advance(ready_[i]);
  ready_.clear();
}

void DataPlane::advance(uint32_t id) {
  Request& request = requests_[id];
  while (request.next < request.items.size()) {
    Item& item = request.items[request.next];
    const Progress progress = item.write ? copy_for_writing(id, item) : read(id, item);
    if (progress == Progress::kUnderWay) return;
    if (progress == Progress::kFailed)
      return unserved(id, item.version != store_.version(item.dataset));
    ++request.next;
    request.room_taken = false;
  }
  request.step = Step::kServed;
  const uint32_t node = request.node;
  end_serving(request);
  client_.served(request.task, request.service);
  begin_possible(node);
}

void DataPlane::end_serving(Request& request) {
  --nodes_[request.node].movers_busy;
}

DataPlane::Progress DataPlane::read(uint32_t id, Item& item) {
  Request& request = requests_[id];
  Replica& replica = *item.replica;
  if (replica.fast()) {
    count(request, item.joined ? replica.arrived : ServeHow::kHit, replica.bytes);
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
  if (base && base->busy) return wait_idle(id);
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
  request.victim = &victim;
  victim.busy = true;
  if (written) {
    request.service.evicted_written_bytes += victim.bytes;
    start_flow(id, static_cast<double>(victim.bytes), {nodes_[request.node].slow_write});
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
  const auto bytes = static_cast<double>(store_.bytes(item.dataset));
  if (request.how == ServeHow::kHit) {
    start_flow(id, bytes, {here.memory});
  } else if (request.how == ServeHow::kPromotion) {
    start_flow(id, bytes, {here.slow_read});
  } else {
    const Replica* source = store_.source(item.dataset, item.version, request.node);
    if (!source) return Progress::kFailed;
    const Node& there = nodes_[source->node];
    const double sent = bytes + link_latency_bytes_[request.node];
    request.source = source->node;
    if (source->fast())
      start_flow(id, sent, {there.uplink, here.downlink});
    else
      start_flow(id, sent, {there.slow_read, there.uplink, here.downlink});
  }
  return Progress::kUnderWay;
}

void DataPlane::loaded(Request& request) {
  const Item& item = request.items[request.next];
  count(request, request.how, store_.bytes(item.dataset));
  request.source = kNone;
  if (!item.write) {
    Replica& replica = *item.replica;
    store_.gain_fast(replica);
    replica.arrived = request.how;
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

void DataPlane::count(Request& request, ServeHow how, uint64_t bytes) {
  (how == ServeHow::kHit         ? request.service.hit_bytes
   : how == ServeHow::kPromotion ? request.service.promoted_bytes
                                 : request.service.fetched_bytes) += bytes;
}

DataPlane::Progress DataPlane::wait_idle(uint32_t id) {
  nodes_[requests_[id].node].idle_waiters.push_back(id);
  return Progress::kUnderWay;
}

void DataPlane::wake_idle(Node& node) {
  ready_.insert(ready_.end(), node.idle_waiters.begin(), node.idle_waiters.end());
  node.idle_waiters.clear();
}

void DataPlane::start_flow(uint32_t id, double bytes, std::initializer_list<uint32_t> links) {
  Request& request = requests_[id];
  if (request.step == Step::kWorking) ++nodes_[request.node].transfers;
  request.flow = flows_.start(now_ns_, bytes, links, id);
}

bool DataPlane::flow_event(const Event& event) {
  const auto id = flows_.take_ended(event);
  if (!id) return false;
  now_ns_ = event.at_ns;
  Request& request = requests_[*id];
  request.flow = kNone;
  if (request.step == Step::kSettling) {
    settled(*id, true);
  } else {
    --nodes_[request.node].transfers;
    if (request.victim) {
      store_.gain_slow(*request.victim);
      evicted(request);
    } else {
      loaded(request);
    }
    ready_.push_back(*id);
  }
  run_ready();
  return true;
}

void DataPlane::unserved(uint32_t id, bool stale) {
  Request& request = requests_[id];
  const uint32_t node = request.node;
  let_go(request);
  client_.unserved(request.task, stale);
  free_request(id);
  begin_possible(node);
}

void DataPlane::let_go(Request& request) {
  Node& node = nodes_[request.node];
  auto& cache = store_.cache(request.node);
  if (request.flow != kNone) {
    flows_.cancel(now_ns_, std::exchange(request.flow, kNone));
    if (request.step == Step::kWorking) --node.transfers;
  }
  if (request.step == Step::kWorking) end_serving(request);
  if (request.victim) {
    Replica& victim = *std::exchange(request.victim, nullptr);
    cache.slow.give(victim.bytes);
    victim.busy = false;
    store_.settle(victim);
  }
  release_owned(request);
  if (request.room_taken) cache.fast.give(store_.bytes(request.items[request.next].dataset));
  for (size_t i = 0; request.admitted && i < request.items.size(); ++i) {
    const Item& item = request.items[i];
    if (!item.write) {
      store_.unpin(*item.replica);
      continue;
    }
    cache.pinned_bytes -= store_.bytes(item.dataset);
    if (i < request.next) cache.fast.give(store_.bytes(item.dataset));
  }
  client_.room_changed(request.node);
  wake_idle(node);
}

void DataPlane::abandon(int64_t now_ns, uint32_t task) {
  now_ns_ = now_ns;
  const uint32_t id = std::exchange(request_of_[task], kNone);
  if (id == kNone) return;
  Request& request = requests_[id];
  Node& node = nodes_[request.node];
  for (auto* list :
       {&node.pin_waiters, &node.mover_waiters, &node.idle_waiters, &node.settle_waiters})
    std::erase(*list, id);
  if (request.step == Step::kSettling && request.flow != kNone) {
    for (const Item& item : request.items)
      if (item.write) store_.cache(request.node).slow.give(store_.bytes(item.dataset));
    node.settler_busy = false;
  }
  let_go(request);
  free_request(id);
  std::erase(ready_, id);
}

void DataPlane::resume(int64_t now_ns, uint32_t node) {
  now_ns_ = now_ns;
  settle_next(node);
  begin_possible(node);
  run_ready();
}

void DataPlane::source_failed(int64_t now_ns, uint32_t node) {
  now_ns_ = now_ns;
  for (uint32_t id = 0; id < requests_.size(); ++id) {
    Request& request = requests_[id];
    if (request.source != node || request.flow == kNone) continue;
    flows_.cancel(now_ns, std::exchange(request.flow, kNone));
    --nodes_[request.node].transfers;
    request.source = kNone;
    ready_.push_back(id);
  }
  run_ready();
}

void DataPlane::finish(int64_t now_ns, uint32_t task) {
  now_ns_ = now_ns;
  const uint32_t id = request_of_[task];
  requests_[id].step = Step::kSettling;
  nodes_[requests_[id].node].settle_waiters.push_back(id);
  settle_next(requests_[id].node);
  run_ready();
}

void DataPlane::settle_next(uint32_t index) {
  Node& node = nodes_[index];
  while (!node.settler_busy && !node.settle_waiters.empty()) {
    const uint32_t id = node.settle_waiters.front();
    node.settle_waiters.erase(node.settle_waiters.begin());
    uint64_t bytes = 0;
    for (const Item& item : requests_[id].items)
      if (item.write) bytes += store_.bytes(item.dataset);
    if (bytes == 0 || store_.cache(index).exclusive) {
      settled(id, true);
    } else if (!store_.take_slow_room(index, bytes)) {
      settled(id, false);
    } else {
      node.settler_busy = true;
      start_flow(id, static_cast<double>(bytes), {node.slow_write});
    }
  }
}

void DataPlane::settled(uint32_t id, bool committed) {
  Request& request = requests_[id];
  const uint32_t node = request.node, task = request.task;
  if (committed) {
    for (Item& item : request.items) {
      if (!item.write) continue;
      store_.cache(node).pinned_bytes -= store_.bytes(item.dataset);
      store_.publish(node, item.dataset);
    }
    std::erase_if(request.items, [](const Item& item) { return item.write; });
    request.next = static_cast<uint32_t>(request.items.size());
  }
  let_go(request);
  free_request(id);
  nodes_[node].settler_busy = false;
  client_.settled(task, committed);
  begin_possible(node);
  settle_next(node);
}

}  // namespace tierpilot::sim

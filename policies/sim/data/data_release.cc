// The end of a request: commits of what was written, and what is given back when it fails (as
// daemon/memory/pool/commit.cc).
#include <algorithm>

#include "policies/sim/data/data_plane.h"

namespace tierpilot::sim {

void DataPlane::unserved(uint32_t id, bool stale) {
  Request& request = requests_[id];
  const uint32_t node = request.node;
  let_go(request);
  client_.unserved(now_ns_, request.task, stale);
  free_request(id);
  begin_possible(node);
}

void DataPlane::let_go(Request& request) {
  Node& node = nodes_[request.node];
  auto& cache = store_.cache(request.node);
  if (request.flow != kNone) {
    flows_.cancel(now_ns_, std::exchange(request.flow, kNone));
    if (request.step == Step::kWorking) end_transfer(request.node);
  }
  if (request.has_turn) pass_turn(request);
  if (request.step == Step::kWorking) end_serving(request);
  if (request.victim) {
    Replica& victim = *std::exchange(request.victim, nullptr);
    if (request.writes_back) cache.slow.give(victim.bytes);
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
  for (Waiting* list : {&node.for_pins, &node.for_mover, &node.for_idle, &node.for_settler})
    leave(*list, id);
  if (request.source != kNone && !request.has_turn)
    leave(nodes_[std::exchange(request.source, kNone)].for_turn, id);
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
    if (request.source != node) continue;
    const bool about_to_begin = request.has_turn && request.flow == kNone;
    if (request.flow != kNone) {
      flows_.cancel(now_ns, std::exchange(request.flow, kNone));
      end_transfer(request.node);
    }
    request.source = kNone;
    request.has_turn = false;
    if (!about_to_begin) ready_.push_back(id);
  }
  nodes_[node].turns = 0;
  nodes_[node].for_turn = {};
  run_ready();
}

void DataPlane::finish(int64_t now_ns, uint32_t task) {
  now_ns_ = now_ns;
  const uint32_t id = request_of_[task];
  requests_[id].step = Step::kSettling;
  enqueue(nodes_[requests_[id].node].for_settler, id);
  settle_next(requests_[id].node);
  run_ready();
}

void DataPlane::settle_next(uint32_t index) {
  Node& node = nodes_[index];
  while (!node.settler_busy && !node.for_settler.empty()) {
    const uint32_t id = dequeue(node.for_settler);
    uint64_t bytes = 0;
    double start_bytes = 0;
    for (const Item& item : requests_[id].items) {
      if (!item.write) continue;
      bytes += store_.bytes(item.dataset);
      start_bytes += kind(node).evict_start_bytes;
    }
    if (bytes == 0 || store_.cache(index).exclusive) {
      settled(id, true);
    } else if (!store_.take_slow_room(index, bytes)) {
      settled(id, false);
    } else {
      node.settler_busy = true;
      start_flow(id, static_cast<double>(bytes) + start_bytes, {node.link(kSlowWrite)});
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
    auto& items = request.items;
    items.erase(
        std::remove_if(items.begin(), items.end(), [](const Item& item) { return item.write; }),
        items.end());
    request.next = static_cast<uint32_t>(request.items.size());
  }
  let_go(request);
  free_request(id);
  nodes_[node].settler_busy = false;
  client_.settled(now_ns_, task, committed);
  begin_possible(node);
  settle_next(node);
}

}  // namespace tierpilot::sim

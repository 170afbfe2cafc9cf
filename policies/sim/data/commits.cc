#include "policies/sim/data/commits.h"

#include <algorithm>

namespace tierpilot::sim {

Commits::Commits(size_t nodes, ReplicaStore& store, Requests& requests, Transfers& transfers)
    : store_(store), requests_(requests), transfers_(transfers), nodes_(nodes) {}

std::optional<Commits::Settled> Commits::begin_next(int64_t now_ns, uint32_t index) {
  Node& node = nodes_[index];
  const uint32_t id = requests_.dequeue(node.line);
  uint64_t bytes = 0;
  uint32_t files = 0;
  for (const DataItem& item : requests_[id].items) {
    if (!item.write) continue;
    bytes += store_.datasets().bytes(item.dataset);
    ++files;
  }
  if (bytes == 0 || store_.cache(index).exclusive) return Settled{id, true};
  if (!store_.take_slow_room(index, bytes)) return Settled{id, false};
  node.busy = true;
  requests_[id].flow = transfers_.commit(now_ns, id, index, bytes, files);
  return std::nullopt;
}

void Commits::publish(DataRequest& request) {
  auto& items = request.items;
  for (const DataItem& item : items) {
    if (!item.write) continue;
    store_.cache(request.node).pinned_bytes -= store_.datasets().bytes(item.dataset);
    store_.publish(request.node, item.dataset);
  }
  items.erase(
      std::remove_if(items.begin(), items.end(), [](const DataItem& item) { return item.write; }),
      items.end());
  request.next = static_cast<uint32_t>(items.size());
}

void Commits::leave(uint32_t id) {
  const DataRequest& request = requests_[id];
  Node& node = nodes_[request.node];
  requests_.leave(node.line, id);
  if (request.step != ServingStep::kSettling || request.flow == kNone) return;
  for (const DataItem& item : request.items)
    if (item.write) store_.cache(request.node).slow.give(store_.datasets().bytes(item.dataset));
  node.busy = false;
}

}  // namespace tierpilot::sim

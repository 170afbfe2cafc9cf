#include "policies/sim/data/admission.h"

namespace tierpilot::sim {

Admission::Admission(const ClusterSpec& cluster, ReplicaStore& store, Requests& requests)
    : store_(store), requests_(requests) {
  for (const NodeGroup& group : cluster.groups)
    nodes_.resize(nodes_.size() + group.count, Node{.movers = group.movers});
}

void Admission::enqueue(uint32_t id) {
  requests_.enqueue(nodes_[requests_[id].node].for_pins, id);
}

void Admission::leave(uint32_t id) {
  Node& node = nodes_[requests_[id].node];
  requests_.leave(node.for_pins, id);
  requests_.leave(node.for_mover, id);
}

void Admission::begin_possible(uint32_t index) {
  Node& node = nodes_[index];
  while (!node.for_pins.empty() && admit(requests_[node.for_pins.first]))
    requests_.enqueue(node.for_mover, requests_.dequeue(node.for_pins));
  for (; !node.for_mover.empty() && node.busy < node.movers; ++node.busy) {
    const uint32_t id = requests_.dequeue(node.for_mover);
    requests_[id].step = ServingStep::kWorking;
    requests_.go_on(id);
  }
}

bool Admission::admit(DataRequest& request) {
  auto& cache = store_.cache(request.node);
  uint64_t need = 0;
  for (const DataItem& item : request.items) {
    const Replica* replica = store_.find(request.node, item.dataset, item.version);
    if (item.write || !replica || replica->pins == 0) need += store_.datasets().bytes(item.dataset);
  }
  if (cache.pinned_bytes + need > cache.fast.budget()) return false;
  for (DataItem& item : request.items) {
    if (item.write) {
      cache.pinned_bytes += store_.datasets().bytes(item.dataset);
    } else {
      item.replica = &store_.entry(request.node, item.dataset, item.version);
      // An entry made anew for a version that has been overwritten goes with its last use.
      item.replica->doomed = item.version != store_.datasets().version(item.dataset);
      store_.pin(*item.replica);
    }
  }
  request.admitted = true;
  return true;
}

void Admission::give_back(DataRequest& request) {
  auto& cache = store_.cache(request.node);
  if (request.room_taken)
    cache.fast.give(store_.datasets().bytes(request.items[request.next].dataset));
  for (size_t i = 0; request.admitted && i < request.items.size(); ++i) {
    const DataItem& item = request.items[i];
    if (!item.write) {
      store_.unpin(*item.replica);
      continue;
    }
    cache.pinned_bytes -= store_.datasets().bytes(item.dataset);
    if (i < request.next) cache.fast.give(store_.datasets().bytes(item.dataset));
  }
}

}  // namespace tierpilot::sim

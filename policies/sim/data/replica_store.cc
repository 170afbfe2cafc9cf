#include "policies/sim/data/replica_store.h"

#include <fmt/format.h>

#include <memory>

namespace tierpilot::sim {

ReplicaStore::ReplicaStore(const ClusterSpec& cluster, const Workload& workload)
    : datasets_(workload) {
  caches_.reserve(cluster.node_count());
  for (const NodeGroup& group : cluster.groups)
    for (uint32_t i = 0; i < group.count; ++i) caches_.emplace_back(group);
}

Status ReplicaStore::place_homes() {
  const auto nodes = static_cast<uint32_t>(caches_.size());
  for (uint32_t dataset = 0; dataset < datasets_.count(); ++dataset) {
    uint32_t tried = 0;
    const auto candidate = [&] { return (dataset + tried) % nodes; };
    while (tried < nodes && !caches_[candidate()].slow.fits(datasets_.bytes(dataset))) ++tried;
    if (tried == nodes)
      return fail(
          ErrorCode::kExhausted,
          fmt::format("the datasets do not fit into the nodes' slow tiers: dataset {} of {} "
                      "({} bytes) finds no room beside those before it. Raise slow_budget "
                      "in the cluster file, or make the datasets fewer or smaller",
                      dataset + 1, datasets_.count(), datasets_.bytes(dataset)));
    Cache& cache = caches_[candidate()];
    cache.slow.take(datasets_.bytes(dataset));
    Replica& replica = entry(candidate(), dataset, 1);
    gain_slow(replica);
    cache.order.set_home(replica, true);
    cache.order.touch(replica);
  }
  return {};
}

Replica* ReplicaStore::find(uint32_t node, uint32_t dataset, uint32_t version) {
  Replica* const found = by_place_.find(node, dataset);
  return found && found->version == version ? found : nullptr;
}

Replica& ReplicaStore::entry(uint32_t node, uint32_t dataset, uint32_t version) {
  if (Replica* known = find(node, dataset, version)) return *known;
  if (free_.empty()) free_.push_back(&replicas_.emplace_back());
  Replica& replica = *free_.back();
  free_.pop_back();
  replica.bytes = datasets_.bytes(dataset);
  replica.dataset = dataset;
  replica.node = node;
  replica.version = version;
  const Replica* const here = by_place_.find(node, dataset);
  if (!here || here->version < version) by_place_.set(node, dataset, replica);
  return replica;
}

void ReplicaStore::pin(Replica& replica) {
  Cache& cache = caches_[replica.node];
  if (replica.pins++ == 0) cache.pinned_bytes += replica.bytes;
  cache.order.touch(replica);
}

void ReplicaStore::unpin(Replica& replica) {
  Cache& cache = caches_[replica.node];
  if (--replica.pins == 0) cache.pinned_bytes -= replica.bytes;
  cache.order.touch(replica);
  settle(replica);
}

void ReplicaStore::gain_fast(Replica& replica) {
  caches_[replica.node].order.set_fast(replica, true);
  datasets_.list(replica);
}

void ReplicaStore::gain_slow(Replica& replica) {
  caches_[replica.node].order.set_slow(replica, true);
  datasets_.list(replica);
}

void ReplicaStore::drop_fast(Replica& replica) {
  Cache& cache = caches_[replica.node];
  cache.order.set_fast(replica, false);
  cache.fast.give(replica.bytes);
  replica.slow() ? datasets_.left_fast(replica) : datasets_.unlist(replica);
}

void ReplicaStore::drop_slow(Replica& replica) {
  Cache& cache = caches_[replica.node];
  cache.order.set_slow(replica, false);
  cache.slow.give(replica.bytes);
  if (!replica.fast()) datasets_.unlist(replica);
}

void ReplicaStore::settle(Replica& replica) {
  if (replica.pins > 0 || replica.busy) return;
  if (replica.doomed && replica.fast()) drop_fast(replica);
  if (replica.doomed && replica.slow()) drop_slow(replica);
  if (!replica.fast() && !replica.slow()) forget(replica);
}

void ReplicaStore::forget(Replica& replica) {
  if (by_place_.find(replica.node, replica.dataset) == &replica)
    by_place_.erase(replica.node, replica.dataset);
  std::destroy_at(&replica);
  free_.push_back(std::construct_at(&replica));
}

bool ReplicaStore::slow_room_possible(uint32_t node, uint64_t bytes) const {
  const Cache& cache = caches_[node];
  if (cache.slow.fits(bytes)) return true;
  const uint64_t kept = cache.slow.used() - cache.order.slow_droppable_bytes();
  return kept <= cache.slow.budget() && bytes <= cache.slow.budget() - kept;
}

bool ReplicaStore::take_slow_room(uint32_t node, uint64_t bytes) {
  if (!slow_room_possible(node, bytes)) return false;
  Cache& cache = caches_[node];
  while (!cache.slow.fits(bytes)) {
    auto& victim = static_cast<Replica&>(*cache.order.slow_victim());
    drop_slow(victim);
    settle(victim);
  }
  cache.slow.take(bytes);
  return true;
}

void ReplicaStore::publish(uint32_t node, uint32_t dataset) {
  const auto older = datasets_.begin_version(dataset);
  for (const auto& holder : older) {
    holder.replica->doomed = true;
    settle(*holder.replica);
  }
  Replica& made = entry(node, dataset, datasets_.version(dataset));
  Cache& cache = caches_[node];
  gain_fast(made);
  if (!cache.exclusive) gain_slow(made);
  cache.order.set_home(made, true);
  cache.order.touch(made);
}

void ReplicaStore::node_failed(uint32_t node) {
  Cache& cache = caches_[node];
  cache.up = false;
  for (Replica& replica : replicas_) {
    if (replica.node != node) continue;
    datasets_.unlist(replica);
    if (replica.fast()) drop_fast(replica);
    if (replica.slow() && cache.exclusive) drop_slow(replica);
    datasets_.node_down(replica);
    settle(replica);
  }
}

void ReplicaStore::node_repaired(uint32_t node) {
  caches_[node].up = true;
  for (Replica& replica : replicas_) {
    if (replica.node != node) continue;
    replica.doomed = replica.version != datasets_.version(replica.dataset);
    datasets_.node_up(replica);
    datasets_.list(replica);
    settle(replica);
  }
}

}  // namespace tierpilot::sim

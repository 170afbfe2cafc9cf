#include "policies/sim/data/replica_store.h"

#include <fmt/format.h>

#include <memory>

#include "policies/scheduling/source_rank.h"

namespace tierpilot::sim {

ReplicaStore::ReplicaStore(const ClusterSpec& cluster, const Workload& workload)
    : entries_(workload.datasets.size()) {
  for (size_t i = 0; i < entries_.size(); ++i) entries_[i].bytes = workload.datasets[i].bytes;
  caches_.reserve(cluster.node_count());
  for (const NodeGroup& group : cluster.groups)
    for (uint32_t i = 0; i < group.count; ++i) caches_.emplace_back(group);
}

Status ReplicaStore::place_homes() {
  const auto nodes = static_cast<uint32_t>(caches_.size());
  for (uint32_t dataset = 0; dataset < entries_.size(); ++dataset) {
    uint32_t tried = 0;
    const auto candidate = [&] { return (dataset + tried) % nodes; };
    while (tried < nodes && !caches_[candidate()].slow.fits(entries_[dataset].bytes)) ++tried;
    if (tried == nodes)
      return fail(
          ErrorCode::kExhausted,
          fmt::format("the datasets do not fit into the nodes' slow tiers: dataset {} of {} "
                      "({} bytes) finds no room beside those before it. Raise slow_budget "
                      "in the cluster file, or make the datasets fewer or smaller",
                      dataset + 1, entries_.size(), entries_[dataset].bytes));
    Cache& cache = caches_[candidate()];
    cache.slow.take(entries_[dataset].bytes);
    Replica& replica = entry(candidate(), dataset, 1);
    gain_slow(replica);
    cache.order.set_home(replica, true);
    cache.order.touch(replica);
  }
  return {};
}

ReplicaStore::Sources ReplicaStore::sources(uint32_t dataset, uint32_t version, uint32_t reader,
                                            uint32_t task) const {
  const Entry& entry = entries_[dataset];
  Sources sources;
  if (entry.version != version) return sources;
  auto& [best, count] = sources;
  std::array<SourceRank, std::tuple_size_v<decltype(sources.best)>> ranks;
  for (const Holder& holder : entry.holders) {
    if (holder.node == reader) continue;
    const SourceRank rank = source_rank(task, holder.node, holder.fast);
    if (count == best.size() && !(rank < ranks[count - 1])) continue;
    if (count < best.size()) ++count;
    size_t at = count - 1;
    for (; at > 0 && rank < ranks[at - 1]; --at) best[at] = best[at - 1], ranks[at] = ranks[at - 1];
    best[at] = holder;
    ranks[at] = rank;
  }
  return sources;
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
  replica.bytes = entries_[dataset].bytes;
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
  list(replica);
}

void ReplicaStore::gain_slow(Replica& replica) {
  caches_[replica.node].order.set_slow(replica, true);
  list(replica);
}

void ReplicaStore::drop_fast(Replica& replica) {
  Cache& cache = caches_[replica.node];
  cache.order.set_fast(replica, false);
  cache.fast.give(replica.bytes);
  if (!replica.slow()) return unlist(replica);
  if (replica.holder != kNone) entries_[replica.dataset].holders[replica.holder].fast = false;
}

void ReplicaStore::drop_slow(Replica& replica) {
  Cache& cache = caches_[replica.node];
  cache.order.set_slow(replica, false);
  cache.slow.give(replica.bytes);
  if (!replica.fast()) unlist(replica);
}

void ReplicaStore::list(Replica& replica) {
  Entry& entry = entries_[replica.dataset];
  const bool held = replica.fast() || replica.slow();
  if (!held || replica.version != entry.version) return;
  if (replica.holder == kNone) {
    availability_ += entry.holders.empty();
    replica.holder = static_cast<uint32_t>(entry.holders.size());
    entry.holders.push_back({&replica, replica.node, replica.fast()});
  }
  entry.holders[replica.holder].fast = replica.fast();
}

void ReplicaStore::unlist(Replica& replica) {
  if (replica.holder == kNone) return;
  auto& holders = entries_[replica.dataset].holders;
  holders.back().replica->holder = replica.holder;
  holders[replica.holder] = holders.back();
  holders.pop_back();
  availability_ += holders.empty();
  replica.holder = kNone;
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
  Entry& entry = entries_[dataset];
  const Holders older = std::move(entry.holders);
  entry.holders.clear();
  entry.copies_down = 0;
  ++entry.version;
  for (const Holder& holder : older) {
    holder.replica->holder = kNone;
    holder.replica->doomed = true;
    settle(*holder.replica);
  }
  Replica& made = this->entry(node, dataset, entry.version);
  Cache& cache = caches_[node];
  gain_fast(made);
  availability_ -= !older.empty();  // it was held all the time
  if (!cache.exclusive) gain_slow(made);
  cache.order.set_home(made, true);
  cache.order.touch(made);
}

void ReplicaStore::node_failed(uint32_t node) {
  Cache& cache = caches_[node];
  cache.up = false;
  for (Replica& replica : replicas_) {
    if (replica.node != node) continue;
    unlist(replica);
    if (replica.fast()) drop_fast(replica);
    if (replica.slow() && cache.exclusive) drop_slow(replica);
    Entry& entry = entries_[replica.dataset];
    entry.copies_down += replica.slow() && replica.version == entry.version;
    settle(replica);
  }
}

void ReplicaStore::node_repaired(uint32_t node) {
  caches_[node].up = true;
  for (Replica& replica : replicas_) {
    if (replica.node != node) continue;
    Entry& entry = entries_[replica.dataset];
    replica.doomed = replica.version != entry.version;
    if (!replica.doomed) --entry.copies_down;
    list(replica);
    settle(replica);
  }
}

}  // namespace tierpilot::sim

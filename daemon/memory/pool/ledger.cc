#include "daemon/memory/pool/ledger.h"

#include <algorithm>

namespace tierpilot {
namespace {

std::optional<DatasetId> id_of(const TierReplica* replica) {
  return replica ? std::optional(static_cast<const Replica*>(replica)->id) : std::nullopt;
}

}  // namespace

Replica* PoolLedger::find(const DatasetId& id) {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

Replica& PoolLedger::entry(const DatasetId& id, uint64_t bytes) {
  const auto [at, made] = entries_.try_emplace(id);
  if (made) {
    at->second.id = id;
    at->second.bytes = bytes;
  }
  return at->second;
}

void PoolLedger::erase_if_empty(const DatasetId& id) {
  const Replica* replica = find(id);
  if (replica && !replica->fast() && !replica->slow() && !replica->busy && replica->pins == 0)
    entries_.erase(id);
}

bool PoolLedger::can_pin(uint64_t bytes) const {
  return pinned_bytes_ <= fast.budget() && bytes <= fast.budget() - pinned_bytes_;
}

void PoolLedger::pin(const DatasetId& id, uint64_t bytes) {
  Replica& replica = entry(id, bytes);
  if (replica.pins++ == 0) pinned_bytes_ += replica.bytes;
  order.touch(replica);
}

void PoolLedger::unpin(const DatasetId& id) {
  Replica& replica = *find(id);
  if (--replica.pins == 0) pinned_bytes_ -= replica.bytes;
  order.touch(replica);
  erase_if_empty(id);
}

std::optional<DatasetId> PoolLedger::fast_victim(const std::set<DatasetId>& except) {
  return id_of(order.fast_victim([&](const TierReplica& replica) {
    return except.contains(static_cast<const Replica&>(replica).id);
  }));
}

bool PoolLedger::fast_room_coming() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& item) {
    const Replica& replica = item.second;
    return replica.leaving ||
           (replica.busy && (replica.fast() || replica.arriving) && replica.pins == 0);
  });
}

std::optional<DatasetId> PoolLedger::slow_victim() {
  return id_of(order.slow_victim());
}

void PoolLedger::doom(const std::string& name, uint64_t below) {
  for (auto it = entries_.lower_bound({name, 0}); it != entries_.end(); ++it) {
    if (it->first.name != name || it->first.version >= below) break;
    it->second.doomed = true;
  }
}

std::optional<DatasetId> PoolLedger::removable() const {
  for (const auto& [id, replica] : entries_)
    if (replica.doomed && replica.pins == 0 && !replica.busy) return id;
  return std::nullopt;
}

bool PoolLedger::holds(const std::string& name) const {
  const auto it = entries_.lower_bound({name, 0});
  return it != entries_.end() && it->first.name == name;
}

}  // namespace tierpilot

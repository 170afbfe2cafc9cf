#include "daemon/memory/pool/replica_manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "daemon/memory/pool/transfer.h"

namespace tierpilot {
ReplicaManager::ReplicaManager(const PoolOptions& options, TierStore fast, TierStore slow,
                               std::shared_ptr<RemoteSource> remote, OnChange on_change)
    : fast_(std::move(fast)),
      slow_(std::move(slow)),
      remote_(std::move(remote)),
      on_change_(std::move(on_change)),
      ledger_(options.fast_budget_bytes, options.slow_budget_bytes) {}

Result<std::unique_ptr<ReplicaManager>> ReplicaManager::open(const PoolOptions& options,
                                                             std::shared_ptr<RemoteSource> remote,
                                                             OnChange on_change) {
  auto fast = TierStore::open({.label = "fast tier",
                               .dir = options.fast_dir,
                               .in_memory = true,
                               .numa_node = options.fast_numa_node,
                               .budget_bytes = options.fast_budget_bytes});
  if (!fast) return tl::unexpected(fast.error());
  auto slow = TierStore::open({.label = "slow tier",
                               .dir = options.slow_dir,
                               .in_memory = options.slow_kind == "numa",
                               .numa_node = options.slow_numa_node,
                               .budget_bytes = options.slow_budget_bytes});
  if (!slow) return tl::unexpected(slow.error());
  std::unique_ptr<ReplicaManager> manager(new ReplicaManager(
      options, std::move(*fast), std::move(*slow), std::move(remote), std::move(on_change)));
  if (auto status = manager->rescan(); !status) return tl::unexpected(status.error());
  return manager;
}

Status ReplicaManager::rescan() {
  const auto slow = slow_.scan();
  if (!slow) return tl::unexpected(slow.error());
  const auto fast = fast_.scan();
  if (!fast) return tl::unexpected(fast.error());
  adopt(*slow, Tier::kSlow);
  adopt(*fast, Tier::kFast);

  Lock lock(mutex_);
  EvictionTally tally;
  // Budgets may be smaller than they were. What cannot leave stays, and nothing new comes in.
  for (const auto& status :
       {make_slow_room(lock, 0), make_fast_room(lock, 0, kNeverCancelled, tally)})
    if (!status) spdlog::warn("starting over budget: {}", status.error().message);
  return {};
}

void ReplicaManager::adopt(const std::vector<FoundReplica>& found, Tier tier) {
  const TierStore& store = tier == Tier::kFast ? fast_ : slow_;
  for (const auto& [file, home, modified_ns] : found) {
    Replica& replica = ledger_.entry(file.id, file.bytes);
    // A crash in the middle of a move leaves both copies; and one version has one size.
    const bool surplus = (tier == Tier::kFast && replica.slow() && exclusive()) ||
                         (tier == Tier::kSlow && replica.slow()) || replica.bytes != file.bytes;
    if (surplus) {
      spdlog::warn("{}: a second copy of {} is removed", store.name(), describe(file.id));
      if (auto status = store.remove(file); !status) spdlog::error("{}", status.error().message);
      continue;
    }
    if (tier == Tier::kFast)
      ledger_.order.set_fast(replica, true);
    else
      ledger_.order.set_slow(replica, true);
    (tier == Tier::kFast ? ledger_.fast : ledger_.slow).take(file.bytes);
    ledger_.order.set_home(replica, replica.home() || home);
    ledger_.order.touch(replica);
  }
}

Status ReplicaManager::check_fits(const std::vector<ServeItem>& items) const {
  const uint64_t budget = ledger_.fast.budget();
  uint64_t need = 0;
  for (const auto& item : items)
    need = item.bytes > UINT64_MAX - need ? UINT64_MAX : need + item.bytes;
  if (need <= budget) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("{}: {} bytes of datasets can never fit into its budget of {} bytes",
                          fast_.name(), need, budget));
}

Status ReplicaManager::check_item(const ServeItem& item) {
  const Replica* replica = ledger_.find(item.id());
  if (replica && replica->bytes != item.bytes)
    return fail(ErrorCode::kInvalid, fmt::format("{}: {} bytes were asked for, but it has {}",
                                                 describe(item.id()), item.bytes, replica->bytes));
  return {};
}

Result<bool> ReplicaManager::admit(const std::vector<ServeItem>& items) {
  Lock lock(mutex_);
  uint64_t need = 0;
  for (const auto& item : items) {
    if (auto status = check_item(item); !status) return tl::unexpected(status.error());
    const Replica* replica = ledger_.find(item.id());
    if (item.write || !replica || replica->pins == 0) need += item.bytes;
  }
  if (!ledger_.can_pin(need)) return false;
  for (const auto& item : items) {
    if (item.write)
      ledger_.pin_private(item.bytes);
    else
      ledger_.pin(item.id(), item.bytes);
  }
  return true;
}

void ReplicaManager::unpin(const ServeItem& item) {
  Lock lock(mutex_);
  if (item.write)
    ledger_.unpin_private(item.bytes);
  else
    ledger_.unpin(item.id());
}

Result<Replica*> ReplicaManager::wait_idle(Lock& lock, const DatasetId& id,
                                           const CancelFlag& cancel) {
  while (true) {
    Replica* replica = ledger_.find(id);
    if (!replica || !replica->busy) return replica;
    if (cancel) return cancelled(describe(id));
    idle_.wait(lock);
  }
}

Status ReplicaManager::set_home(const DatasetId& id, bool home, const CancelFlag& cancel) {
  Lock lock(mutex_);
  const auto found = wait_idle(lock, id, cancel);
  if (!found) return tl::unexpected(found.error());
  if (!*found || (!(*found)->fast() && !(*found)->slow()))
    return fail(ErrorCode::kNotFound, describe(id) + ": no replica on this node");
  Replica& replica = **found;
  Busy busy(*this, id);
  if (home && !replica.slow() && !exclusive()) {
    if (auto status = make_slow_room(lock, replica.bytes); !status) return status;
    if (auto status = write_back(lock, id, replica, cancel); !status) return status;
  }
  const ReplicaFile file{id, replica.bytes};
  const auto status = without_lock(lock, [&]() -> Status {
    if (auto marked = replica.slow() ? slow_.set_home(file, home) : Status(); !marked)
      return marked;
    return replica.fast() ? fast_.set_home(file, home) : Status();
  });
  if (status) ledger_.order.set_home(replica, home);
  changed(id, replica);
  return status;
}

Result<size_t> ReplicaManager::read(const DatasetId& id, uint64_t offset,
                                    std::span<std::byte> into) {
  UniqueFd fd;
  bool from_slow = false;
  uint64_t bytes = 0;
  {
    Lock lock(mutex_);
    const Replica* replica = ledger_.find(id);
    if (!replica || (!replica->fast() && !replica->slow()))
      return fail(ErrorCode::kNotFound, describe(id) + ": no replica on this node");
    from_slow = !replica->fast();
    bytes = replica->bytes;
    auto opened = (from_slow ? slow_ : fast_).open_replica({id, bytes});
    if (!opened) return tl::unexpected(opened.error());
    fd = std::move(*opened);
  }
  if (offset >= bytes) return 0;
  into = into.first(std::min<uint64_t>(into.size(), bytes - offset));
  auto got = read_at(fd.get(), into, offset, describe(id));
  if (from_slow) slow_.drop_page_cache(fd.get());
  if (got && *got < into.size())
    return fail(ErrorCode::kIo, fmt::format("{}: its file ends early", describe(id)));
  return got;
}

std::vector<ReplicaChange> ReplicaManager::replicas() const {
  Lock lock(mutex_);
  std::vector<ReplicaChange> out;
  for (const auto& [id, replica] : ledger_.entries()) {
    if (!replica.fast() && !replica.slow()) continue;
    auto& change = out.emplace_back(change_of(id, replica));
    // Only damage takes a home from the disk. Who was told of it may have forgotten, or never
    // heard.
    change.damaged = change.home && change.in_fast && !change.in_slow && !exclusive();
  }
  return out;
}

PoolUsage ReplicaManager::usage() const {
  Lock lock(mutex_);
  PoolUsage usage{.fast_budget_bytes = ledger_.fast.budget(),
                  .fast_used_bytes = ledger_.fast.used(),
                  .fast_pinned_bytes = ledger_.pinned_bytes(),
                  .slow_budget_bytes = ledger_.slow.budget(),
                  .slow_used_bytes = ledger_.slow.used()};
  for (const auto& [id, replica] : ledger_.entries())
    usage.replicas += replica.fast() || replica.slow();
  return usage;
}

MovementTotals ReplicaManager::totals() const {
  Lock lock(mutex_);
  MovementTotals totals = totals_;
  totals.evict = evict_rate_.rate();
  totals.promote = promote_rate_.rate();
  totals.fetch = fetch_rate_.rate();
  return totals;
}

void ReplicaManager::wake() {
  // With the lock, or a transfer that has just looked at its flag would miss it.
  Lock lock(mutex_);
  idle_.notify_all();
}

ReplicaChange ReplicaManager::change_of(const DatasetId& id, const Replica& replica) {
  return {id.name,        id.version,     replica.bytes, replica.fast(),
          replica.slow(), replica.home(), id.digest};
}

void ReplicaManager::changed(const DatasetId& id, const Replica& replica) {
  on_change_(change_of(id, replica));
}

}  // namespace tierpilot

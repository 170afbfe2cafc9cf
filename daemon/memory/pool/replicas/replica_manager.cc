#include "daemon/memory/pool/replicas/replica_manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {
ReplicaManager::ReplicaManager(const PoolOptions& options, PoolTiers tiers,
                               std::shared_ptr<RemoteSource> remote, OnChange on_change)
    : holdings_(options, std::move(tiers), std::move(on_change)),
      room(holdings_),
      doomed(holdings_),
      remote_(std::move(remote)) {}

Result<std::unique_ptr<ReplicaManager>> ReplicaManager::open(const PoolOptions& options,
                                                             std::shared_ptr<RemoteSource> remote,
                                                             OnChange on_change) {
  auto tiers = PoolTiers::open(options);
  if (!tiers) return tl::unexpected(tiers.error());
  std::unique_ptr<ReplicaManager> manager(
      new ReplicaManager(options, std::move(*tiers), std::move(remote), std::move(on_change)));
  if (auto status = manager->rescan(); !status) return tl::unexpected(status.error());
  return manager;
}

Status ReplicaManager::rescan() {
  const auto slow = holdings_.tiers.slow.scan();
  if (!slow) return tl::unexpected(slow.error());
  const auto fast = holdings_.tiers.fast.scan();
  if (!fast) return tl::unexpected(fast.error());
  adopt(*slow, PoolTier::kSlow);
  adopt(*fast, PoolTier::kFast);

  auto lock = holdings_.lock();
  EvictionTally tally;
  // Budgets may be smaller than they were. What cannot leave stays, and nothing new comes in.
  for (const auto& status :
       {room.make_slow(lock, 0), room.make_fast(lock, 0, kNeverCancelled, tally)})
    if (!status) spdlog::warn("starting over budget: {}", status.error().message);
  return {};
}

void ReplicaManager::adopt(const std::vector<FoundReplica>& found, PoolTier tier) {
  const TierStore& store = holdings_.tiers.of(tier);
  for (const auto& [file, home, modified_ns] : found) {
    Replica& replica = holdings_.ledger.entry(file.id, file.bytes);
    // A crash in the middle of a move leaves both copies; and one version has one size.
    const bool surplus =
        (tier == PoolTier::kFast && replica.slow() && holdings_.tiers.exclusive()) ||
        (tier == PoolTier::kSlow && replica.slow()) || replica.bytes != file.bytes;
    if (surplus) {
      spdlog::warn("{}: a second copy of {} is removed", store.name(), describe(file.id));
      if (auto status = store.remove(file); !status) spdlog::error("{}", status.error().message);
      continue;
    }
    if (tier == PoolTier::kFast)
      holdings_.ledger.order.set_fast(replica, true);
    else
      holdings_.ledger.order.set_slow(replica, true);
    (tier == PoolTier::kFast ? holdings_.ledger.fast : holdings_.ledger.slow).take(file.bytes);
    holdings_.ledger.order.set_home(replica, replica.home() || home);
    holdings_.ledger.order.touch(replica);
  }
}

Status ReplicaManager::check_fits(const std::vector<ServeItem>& items) const {
  const uint64_t budget = holdings_.ledger.fast.budget();
  uint64_t need = 0;
  for (const auto& item : items)
    need = item.bytes > UINT64_MAX - need ? UINT64_MAX : need + item.bytes;
  if (need <= budget) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("{}: {} bytes of datasets can never fit into its budget of {} bytes",
                          holdings_.tiers.fast.name(), need, budget));
}

Status ReplicaManager::check_item(const ServeItem& item) {
  const Replica* replica = holdings_.ledger.find(item.id());
  if (replica && replica->bytes != item.bytes)
    return fail(ErrorCode::kInvalid, fmt::format("{}: {} bytes were asked for, but it has {}",
                                                 describe(item.id()), item.bytes, replica->bytes));
  return {};
}

Result<bool> ReplicaManager::admit(const std::vector<ServeItem>& items) {
  auto lock = holdings_.lock();
  uint64_t need = 0;
  for (const auto& item : items) {
    if (auto status = check_item(item); !status) return tl::unexpected(status.error());
    const Replica* replica = holdings_.ledger.find(item.id());
    if (item.write || !replica || replica->pins == 0) need += item.bytes;
  }
  if (!holdings_.ledger.can_pin(need)) return false;
  for (const auto& item : items) {
    if (item.write)
      holdings_.ledger.pin_private(item.bytes);
    else
      holdings_.ledger.pin(item.id(), item.bytes);
  }
  return true;
}

void ReplicaManager::unpin(const ServeItem& item) {
  auto lock = holdings_.lock();
  if (item.write)
    holdings_.ledger.unpin_private(item.bytes);
  else
    holdings_.ledger.unpin(item.id());
}

Status ReplicaManager::set_home(const DatasetId& id, bool home, const CancelFlag& cancel) {
  auto lock = holdings_.lock();
  const auto found = holdings_.wait_idle(lock, id, cancel);
  if (!found) return tl::unexpected(found.error());
  if (!*found || (!(*found)->fast() && !(*found)->slow()))
    return fail(ErrorCode::kNotFound, describe(id) + ": no replica on this node");
  Replica& replica = **found;
  Holdings::Busy busy(holdings_, id);
  if (home && !replica.slow() && !holdings_.tiers.exclusive()) {
    if (auto status = room.make_slow(lock, replica.bytes); !status) return status;
    if (auto status = room.write_back(lock, replica, cancel); !status) return status;
  }
  const ReplicaFile file{id, replica.bytes};
  const auto status = without_lock(lock, [&]() -> Status {
    if (auto marked = replica.slow() ? holdings_.tiers.slow.set_home(file, home) : Status();
        !marked)
      return marked;
    return replica.fast() ? holdings_.tiers.fast.set_home(file, home) : Status();
  });
  if (status) holdings_.ledger.order.set_home(replica, home);
  holdings_.changed(replica);
  return status;
}

Result<size_t> ReplicaManager::read(const DatasetId& id, uint64_t offset,
                                    std::span<std::byte> into) {
  UniqueFd fd;
  bool from_slow = false;
  uint64_t bytes = 0;
  {
    auto lock = holdings_.lock();
    const Replica* replica = holdings_.ledger.find(id);
    if (!replica || (!replica->fast() && !replica->slow()))
      return fail(ErrorCode::kNotFound, describe(id) + ": no replica on this node");
    from_slow = !replica->fast();
    bytes = replica->bytes;
    auto opened =
        holdings_.tiers.of(from_slow ? PoolTier::kSlow : PoolTier::kFast).open_replica({id, bytes});
    if (!opened) return tl::unexpected(opened.error());
    fd = std::move(*opened);
  }
  if (offset >= bytes) return 0;
  into = into.first(std::min<uint64_t>(into.size(), bytes - offset));
  auto got = read_at(fd.get(), into, offset, describe(id));
  if (from_slow) holdings_.tiers.slow.drop_page_cache(fd.get());
  if (got && *got < into.size())
    return fail(ErrorCode::kIo, fmt::format("{}: its file ends early", describe(id)));
  return got;
}

std::vector<ReplicaChange> ReplicaManager::replicas() const {
  auto lock = holdings_.lock();
  std::vector<ReplicaChange> out;
  for (const auto& [id, replica] : holdings_.ledger.entries()) {
    if (!replica.fast() && !replica.slow()) continue;
    auto& change = out.emplace_back(change_of(replica));
    // Only damage takes a home from the disk. Who was told of it may have forgotten, or never
    // heard.
    change.damaged =
        change.home && change.in_fast && !change.in_slow && !holdings_.tiers.exclusive();
  }
  return out;
}

PoolUsage ReplicaManager::usage() const {
  auto lock = holdings_.lock();
  PoolUsage usage{.fast_budget_bytes = holdings_.ledger.fast.budget(),
                  .fast_used_bytes = holdings_.ledger.fast.used(),
                  .fast_pinned_bytes = holdings_.ledger.pinned_bytes(),
                  .slow_budget_bytes = holdings_.ledger.slow.budget(),
                  .slow_used_bytes = holdings_.ledger.slow.used()};
  for (const auto& [id, replica] : holdings_.ledger.entries())
    usage.replicas += replica.fast() || replica.slow();
  return usage;
}

MovementTotals ReplicaManager::totals() const {
  auto lock = holdings_.lock();
  return {room.totals(), commits_, {promote_rate_.rate(), fetch_rate_.rate()}};
}

}  // namespace tierpilot

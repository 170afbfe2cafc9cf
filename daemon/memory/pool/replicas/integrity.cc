// Copies whose bytes are not those of their checksum, and copies that are made so that one may be
// lost.
#include <fmt/format.h>

#include "base/log.h"
#include "daemon/memory/pool/replicas/replica_manager.h"
#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {

Result<CopyState> ReplicaManager::check_copy(Lock& lock, const DatasetId& id, Replica& replica,
                                             PoolTier tier, const CancelFlag& cancel) {
  const TierStore& store = holdings_.tiers.of(tier);
  if (!(tier == PoolTier::kFast ? replica.fast() : replica.slow())) return CopyState::kAbsent;
  const auto digest = without_lock(lock, [&]() -> Result<ContentDigest> {
    const auto fd = store.open_replica({id, replica.bytes});
    if (!fd) return tl::unexpected(fd.error());
    // What the page cache still has says nothing about the disk.
    store.drop_page_cache(fd->get());
    auto read = digest_file(fd->get(), replica.bytes,
                            fmt::format("{}: checking {}", store.name(), describe(id)), cancel);
    store.drop_page_cache(fd->get());
    return read;
  });
  if (!digest && cancel) return tl::unexpected(digest.error());
  if (digest && *digest == id.digest) return CopyState::kGood;
  // A file that cannot be read is as lost as one with other bytes.
  if (auto status = holdings_.lose(lock, replica, tier); !status)
    return tl::unexpected(status.error());
  return CopyState::kDamaged;
}

Result<ReplicaCheck> ReplicaManager::verify(const DatasetId& id, const CancelFlag& cancel) {
  auto lock = holdings_.lock();
  const auto found = holdings_.wait_idle(lock, id, cancel);
  if (!found) return tl::unexpected(found.error());
  if (!*found || (!(*found)->fast() && !(*found)->slow()))
    return fail(ErrorCode::kNotFound, describe(id) + ": no replica on this node");
  Replica& replica = **found;
  Holdings::Busy busy(holdings_, id);
  ReplicaCheck check;
  for (const auto& [tier, state] :
       {std::pair(PoolTier::kFast, &check.fast), std::pair(PoolTier::kSlow, &check.slow)}) {
    const auto checked = check_copy(lock, id, replica, tier, cancel);
    if (!checked) return tl::unexpected(checked.error());
    *state = *checked;
  }
  return check;
}

Result<ReplicaChange> ReplicaManager::keep(const ServeItem& item, const CancelFlag& cancel) {
  const DatasetId id = item.id();
  auto lock = holdings_.lock();
  const auto found = holdings_.wait_idle(lock, id, cancel);
  if (!found) return tl::unexpected(found.error());
  if (*found && ((*found)->fast() || (*found)->slow())) {
    lock.unlock();
    if (auto kept = set_home(id, true, cancel); !kept) return tl::unexpected(kept.error());
    lock.lock();
    const Replica* replica = holdings_.ledger.find(id);
    if (!replica) return fail(ErrorCode::kConflict, describe(id) + ": was dropped meanwhile");
    return change_of(*replica);
  }
  Replica& replica = holdings_.ledger.entry(id, item.bytes);
  Holdings::Busy busy(holdings_, id);
  if (auto status = room.make_slow(lock, item.bytes); !status)
    return tl::unexpected(status.error());
  std::unique_ptr<ReadTurn> turn;
  const auto status = without_lock(lock, [&]() -> Status {
    auto draft = holdings_.tiers.slow.draft(item.bytes);
    if (!draft) return tl::unexpected(draft.error());
    auto fetched = fetch(*remote_, item.sources, id, item.bytes, draft->fd(), cancel);
    if (!fetched) return tl::unexpected(fetched.error());
    turn = std::move(*fetched);
    return holdings_.tiers.slow.publish(std::move(*draft), {id, item.bytes}, true);
  });
  if (!status) {
    holdings_.ledger.slow.give(item.bytes);
    return tl::unexpected(status.error());
  }
  holdings_.ledger.order.set_slow(replica, true);
  holdings_.ledger.order.set_home(replica, true);
  holdings_.ledger.order.touch(replica);
  holdings_.changed(replica);
  turn->done();
  return change_of(replica);
}

}  // namespace tierpilot

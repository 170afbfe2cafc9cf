// Copies whose bytes are not those of their checksum, and copies that are made so that one may be
// lost.
#include <fmt/format.h>

#include "base/log.h"
#include "daemon/memory/pool/replica_manager.h"
#include "daemon/memory/pool/transfer.h"

namespace tierpilot {

Status ReplicaManager::lose(Lock& lock, const DatasetId& id, Replica& replica, Tier tier) {
  const TierStore& store = tier == Tier::kFast ? fast_ : slow_;
  spdlog::error("{}: {}: the bytes here are not those of its checksum {}: the copy is given up",
                store.name(), describe(id), to_string(id.digest));
  // The last copy may be worth an operator's look. Memory is not kept for that.
  const bool keeps = tier == Tier::kSlow && replica.home() && !slow_.options().in_memory;
  Status status;
  if (tier == Tier::kFast) {
    status = remove_fast(lock, id, replica);
  } else if (!keeps) {
    status = remove_slow(lock, id, replica);
  } else {
    ledger_.order.set_slow(replica, false);
    status = without_lock(lock, [&] { return slow_.set_aside({id, replica.bytes}); });
    ledger_.order.set_slow(replica, !status);
    if (status) ledger_.slow.give(replica.bytes);
  }
  if (!replica.fast() && !replica.slow()) ledger_.order.set_home(replica, false);
  auto change = change_of(id, replica);
  change.damaged = true;
  on_change_(change);
  return status;
}

Result<CopyState> ReplicaManager::check_copy(Lock& lock, const DatasetId& id, Replica& replica,
                                             Tier tier, const CancelFlag& cancel) {
  const TierStore& store = tier == Tier::kFast ? fast_ : slow_;
  if (!(tier == Tier::kFast ? replica.fast() : replica.slow())) return CopyState::kAbsent;
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
  if (auto status = lose(lock, id, replica, tier); !status) return tl::unexpected(status.error());
  return CopyState::kDamaged;
}

Result<ReplicaCheck> ReplicaManager::verify(const DatasetId& id, const CancelFlag& cancel) {
  Lock lock(mutex_);
  const auto found = wait_idle(lock, id, cancel);
  if (!found) return tl::unexpected(found.error());
  if (!*found || (!(*found)->fast() && !(*found)->slow()))
    return fail(ErrorCode::kNotFound, describe(id) + ": no replica on this node");
  Replica& replica = **found;
  Busy busy(*this, id);
  ReplicaCheck check;
  for (const auto& [tier, state] :
       {std::pair(Tier::kFast, &check.fast), std::pair(Tier::kSlow, &check.slow)}) {
    const auto checked = check_copy(lock, id, replica, tier, cancel);
    if (!checked) return tl::unexpected(checked.error());
    *state = *checked;
  }
  return check;
}

Result<ReplicaChange> ReplicaManager::keep(const ServeItem& item, const CancelFlag& cancel) {
  const DatasetId id = item.id();
  Lock lock(mutex_);
  const auto found = wait_idle(lock, id, cancel);
  if (!found) return tl::unexpected(found.error());
  if (*found && ((*found)->fast() || (*found)->slow())) {
    lock.unlock();
    if (auto kept = set_home(id, true, cancel); !kept) return tl::unexpected(kept.error());
    lock.lock();
    const Replica* replica = ledger_.find(id);
    if (!replica) return fail(ErrorCode::kConflict, describe(id) + ": was dropped meanwhile");
    return change_of(id, *replica);
  }
  Replica& replica = ledger_.entry(id, item.bytes);
  Busy busy(*this, id);
  if (auto status = make_slow_room(lock, item.bytes); !status)
    return tl::unexpected(status.error());
  std::unique_ptr<ReadTurn> turn;
  const auto status = without_lock(lock, [&]() -> Status {
    auto draft = slow_.draft(item.bytes);
    if (!draft) return tl::unexpected(draft.error());
    auto fetched = fetch(*remote_, item.sources, id, item.bytes, draft->fd(), cancel);
    if (!fetched) return tl::unexpected(fetched.error());
    turn = std::move(*fetched);
    return slow_.publish(std::move(*draft), {id, item.bytes}, true);
  });
  if (!status) {
    ledger_.slow.give(item.bytes);
    return tl::unexpected(status.error());
  }
  ledger_.order.set_slow(replica, true);
  ledger_.order.set_home(replica, true);
  ledger_.order.touch(replica);
  changed(id, replica);
  turn->done();
  return change_of(id, replica);
}

}  // namespace tierpilot

#include "daemon/memory/pool/replicas/pool_room.h"

#include <fmt/format.h>

#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {

Status PoolRoom::make_fast(Lock& lock, uint64_t bytes, const CancelFlag& cancel,
                           EvictionTally& tally) {
  std::set<DatasetId> stuck;
  Status first_failure;
  while (!holdings_.ledger.fast.fits(bytes)) {
    if (cancel) return cancelled(holdings_.tiers.fast.name());
    if (const auto victim = holdings_.ledger.fast_victim(stuck)) {
      auto status = evict(lock, *victim, cancel, tally);
      if (status) continue;
      // Its bytes stay where they are; another victim may be clean.
      stuck.insert(*victim);
      if (first_failure) first_failure = std::move(status);
    } else if (holdings_.ledger.fast_room_coming()) {
      holdings_.wait(lock);
    } else if (!first_failure) {
      return first_failure;
    } else {
      return fail(ErrorCode::kExhausted,
                  fmt::format("{}: no room for {} bytes: {} of {} are used and none can be evicted",
                              holdings_.tiers.fast.name(), bytes, holdings_.ledger.fast.used(),
                              holdings_.ledger.fast.budget()));
    }
  }
  holdings_.ledger.fast.take(bytes);
  return {};
}

Status PoolRoom::make_slow(Lock& lock, uint64_t bytes) {
  while (!holdings_.ledger.slow.fits(bytes)) {
    const auto victim = holdings_.ledger.slow_victim();
    const uint64_t kept =
        holdings_.ledger.slow.used() - holdings_.ledger.order.slow_droppable_bytes();
    // Nothing is dropped for a request that would still not fit.
    if (!victim || kept > holdings_.ledger.slow.budget() ||
        bytes > holdings_.ledger.slow.budget() - kept)
      return fail(
          ErrorCode::kExhausted,
          fmt::format("{}: no room for {} bytes: {} of {} bytes are used and {} of these must "
                      "stay; raise its budget or drop datasets",
                      holdings_.tiers.slow.name(), bytes, holdings_.ledger.slow.used(),
                      holdings_.ledger.slow.budget(), kept));
    Holdings::Busy busy(holdings_, *victim);
    Replica& replica = *holdings_.ledger.find(*victim);
    if (auto status = holdings_.remove_slow(lock, replica); !status) return status;
    ++totals_.slow_drops;
    holdings_.changed(replica);
  }
  holdings_.ledger.slow.take(bytes);
  return {};
}

Status PoolRoom::demote(const DatasetId& id, const CancelFlag& cancel) {
  auto lock = holdings_.lock();
  const Replica* replica = holdings_.ledger.find(id);
  if (!replica || !replica->fast()) return {};
  // Not waited for: that may take as long as another node does.
  if (replica->busy || replica->pins > 0)
    return fail(ErrorCode::kConflict, describe(id) + ": is in use");
  EvictionTally tally;
  return evict(lock, id, cancel, tally);
}

Status PoolRoom::evict(Lock& lock, const DatasetId& id, const CancelFlag& cancel,
                       EvictionTally& tally) {
  Holdings::Busy busy(holdings_, id);
  Replica& replica = *holdings_.ledger.find(id);
  const int64_t start_ns = now_ns();
  if (!replica.slow()) {
    const auto room = make_slow(lock, replica.bytes);
    if (!room && replica.home()) return room;
    // Without room a replica is dropped unwritten if another node is its home.
    if (room) {
      if (auto status = write_back(lock, replica, cancel); !status) return status;
      tally.written_bytes += replica.bytes;
      totals_.evicted_written_bytes += replica.bytes;
    }
  }
  Status status;
  if (replica.pins == 0) {
    status = holdings_.remove_fast(lock, replica);
    if (status) {
      ++totals_.evictions;
      totals_.evicted_bytes += replica.bytes;
      tally.bytes += replica.bytes;
    }
  } else if (holdings_.tiers.exclusive() && replica.slow()) {  // pinned in the meantime: it stays
    status = holdings_.remove_slow(lock, replica);
  }
  tally.ns += now_ns() - start_ns;
  holdings_.changed(replica);
  return status;
}

Status PoolRoom::write_back(Lock& lock, Replica& replica, const CancelFlag& cancel) {
  const ReplicaFile file{replica.id, replica.bytes};
  const int64_t start_ns = now_ns();
  bool damaged = false;
  const auto status = without_lock(lock, [&, home = replica.home()]() -> Status {
    const auto from = holdings_.tiers.fast.open_replica(file);
    if (!from) return tl::unexpected(from.error());
    auto draft = holdings_.tiers.slow.draft(file.bytes);
    if (!draft) return tl::unexpected(draft.error());
    const auto what =
        fmt::format("{}: writing {} back", holdings_.tiers.slow.name(), describe(file.id));
    const auto copied = copy_bytes(from->get(), draft->fd(), file.bytes, what, cancel);
    if (!copied) return tl::unexpected(copied.error());
    damaged = *copied != file.id.digest;
    if (damaged) return fail(ErrorCode::kIo, what + ": its bytes are not those of its checksum");
    return holdings_.tiers.slow.publish(std::move(*draft), file, home);
  });
  if (!status) {
    holdings_.ledger.slow.give(file.bytes);
    if (damaged) (void)holdings_.lose(lock, replica, PoolTier::kFast);
    return status;
  }
  rate_.add(file.bytes, now_ns() - start_ns);
  holdings_.ledger.order.set_slow(replica, true);
  return {};
}

EvictionTotals PoolRoom::totals() const {
  EvictionTotals totals = totals_;
  totals.evict = rate_.rate();
  return totals;
}

}  // namespace tierpilot

// Making room: eviction from the fast tier, drops from the slow one, removal of old versions.
#include <fmt/format.h>

#include "base/log.h"
#include "daemon/memory/pool/replica_manager.h"
#include "daemon/memory/pool/transfer.h"

namespace tierpilot {

Status ReplicaManager::make_fast_room(Lock& lock, uint64_t bytes, const CancelFlag& cancel,
                                      EvictionTally& tally) {
  std::set<DatasetId> stuck;
  Status first_failure;
  while (!ledger_.fast.fits(bytes)) {
    if (cancel) return cancelled(fast_.name());
    if (const auto victim = ledger_.fast_victim(stuck)) {
      auto status = evict(lock, *victim, cancel, tally);
      if (status) continue;
      // Its bytes stay where they are; another victim may be clean.
      stuck.insert(*victim);
      if (first_failure) first_failure = std::move(status);
    } else if (ledger_.fast_room_coming()) {
      idle_.wait(lock);
    } else if (!first_failure) {
      return first_failure;
    } else {
      return fail(ErrorCode::kExhausted,
                  fmt::format("{}: no room for {} bytes: {} of {} are used and none can be evicted",
                              fast_.name(), bytes, ledger_.fast.used(), ledger_.fast.budget()));
    }
  }
  ledger_.fast.take(bytes);
  return {};
}

Status ReplicaManager::make_slow_room(Lock& lock, uint64_t bytes) {
  while (!ledger_.slow.fits(bytes)) {
    const auto victim = ledger_.slow_victim();
    const uint64_t kept = ledger_.slow.used() - ledger_.order.slow_droppable_bytes();
    // Nothing is dropped for a request that would still not fit.
    if (!victim || kept > ledger_.slow.budget() || bytes > ledger_.slow.budget() - kept)
      return fail(
          ErrorCode::kExhausted,
          fmt::format("{}: no room for {} bytes: {} of {} bytes are used and {} of these must "
                      "stay; raise its budget or drop datasets",
                      slow_.name(), bytes, ledger_.slow.used(), ledger_.slow.budget(), kept));
    Busy busy(*this, *victim);
    Replica& replica = *ledger_.find(*victim);
    if (auto status = remove_slow(lock, *victim, replica); !status) return status;
    ++totals_.slow_drops;
    changed(*victim, replica);
  }
  ledger_.slow.take(bytes);
  return {};
}

Status ReplicaManager::evict(Lock& lock, const DatasetId& id, const CancelFlag& cancel,
                             EvictionTally& tally) {
  Busy busy(*this, id);
  Replica& replica = *ledger_.find(id);
  const int64_t start_ns = now_ns();
  if (!replica.slow()) {
    const auto room = make_slow_room(lock, replica.bytes);
    if (!room && replica.home()) return room;
    // Without room a replica is dropped unwritten if another node is its home.
    if (room) {
      if (auto status = write_back(lock, id, replica, cancel); !status) return status;
      tally.written_bytes += replica.bytes;
      totals_.evicted_written_bytes += replica.bytes;
    }
  }
  Status status;
  if (replica.pins == 0) {
    status = remove_fast(lock, id, replica);
    if (status) {
      ++totals_.evictions;
      totals_.evicted_bytes += replica.bytes;
      tally.bytes += replica.bytes;
    }
  } else if (exclusive() && replica.slow()) {  // pinned in the meantime: it stays
    status = remove_slow(lock, id, replica);
  }
  tally.ns += now_ns() - start_ns;
  changed(id, replica);
  return status;
}

Status ReplicaManager::write_back(Lock& lock, const DatasetId& id, Replica& replica,
                                  const CancelFlag& cancel) {
  const ReplicaFile file{id, replica.bytes};
  const int64_t start_ns = now_ns();
  bool damaged = false;
  const auto status = without_lock(lock, [&, home = replica.home()]() -> Status {
    const auto from = fast_.open_replica(file);
    if (!from) return tl::unexpected(from.error());
    auto draft = slow_.draft(file.bytes);
    if (!draft) return tl::unexpected(draft.error());
    const auto what = fmt::format("{}: writing {} back", slow_.name(), describe(id));
    const auto copied = copy_bytes(from->get(), draft->fd(), file.bytes, what, cancel);
    if (!copied) return tl::unexpected(copied.error());
    damaged = *copied != id.digest;
    if (damaged) return fail(ErrorCode::kIo, what + ": its bytes are not those of its checksum");
    return slow_.publish(std::move(*draft), file, home);
  });
  if (!status) {
    ledger_.slow.give(file.bytes);
    if (damaged) (void)lose(lock, id, replica, Tier::kFast);
    return status;
  }
  evict_rate_.add(file.bytes, now_ns() - start_ns);
  ledger_.order.set_slow(replica, true);
  return {};
}

Status ReplicaManager::remove_fast(Lock& lock, const DatasetId& id, Replica& replica) {
  ledger_.order.set_fast(replica, false);
  replica.leaving = true;
  const auto status =
      without_lock(lock, [&, file = ReplicaFile{id, replica.bytes}] { return fast_.remove(file); });
  replica.leaving = false;
  ledger_.order.set_fast(replica, !status);
  if (status) ledger_.fast.give(replica.bytes);
  return status;
}

Status ReplicaManager::remove_slow(Lock& lock, const DatasetId& id, Replica& replica) {
  ledger_.order.set_slow(replica, false);
  const auto status =
      without_lock(lock, [&, file = ReplicaFile{id, replica.bytes}] { return slow_.remove(file); });
  ledger_.order.set_slow(replica, !status);
  if (status) ledger_.slow.give(replica.bytes);
  return status;
}

void ReplicaManager::doom(const std::string& name, uint64_t below) {
  Lock lock(mutex_);
  ledger_.doom(name, below);
}

void ReplicaManager::doom_one(const DatasetId& id) {
  Lock lock(mutex_);
  if (Replica* replica = ledger_.find(id)) replica->doomed = true;
}

void ReplicaManager::sweep() {
  Lock lock(mutex_);
  while (const auto id = ledger_.removable()) {
    Busy busy(*this, *id);
    Replica& replica = *ledger_.find(*id);
    Status status;
    if (replica.fast()) status = remove_fast(lock, *id, replica);
    if (status && replica.slow()) status = remove_slow(lock, *id, replica);
    if (!status) {
      spdlog::error("{}", status.error().message);
      replica.doomed = false;  // or this would never end
    }
    changed(*id, replica);
  }
}

}  // namespace tierpilot

// What becomes of private copies: the next version of their dataset, or nothing.
#include <fmt/format.h>

#include "base/log.h"
#include "daemon/memory/pool/replicas/replica_manager.h"
#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {
namespace {

// Bytes that are given back unless a replica takes them over. Destroyed with the lock held.
class Charge {
 public:
  Charge(PoolLedger& ledger, uint64_t fast_bytes) : ledger_(&ledger), fast_(fast_bytes) {}
  Charge(Charge&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)), fast_(other.fast_), slow_(other.slow_) {}
  ~Charge() {
    if (!ledger_) return;
    set_fast(0);
    ledger_->slow.give(slow_);
  }

  uint64_t fast() const { return fast_; }
  // Only downwards.
  void set_fast(uint64_t bytes) {
    // Used bytes before pinned ones, or a request could be admitted to room that is not there.
    ledger_->fast.give(fast_ - bytes);
    ledger_->unpin_private(fast_ - bytes);
    fast_ = bytes;
  }
  // These bytes are taken and pinned already.
  void add_fast(uint64_t bytes) { fast_ += bytes; }
  void add_slow(uint64_t bytes) { slow_ += bytes; }
  void hand_over_fast() { ledger_->unpin_private(std::exchange(fast_, 0)); }
  void hand_over_slow() { slow_ = 0; }

 private:
  PoolLedger* ledger_;
  uint64_t fast_;
  uint64_t slow_ = 0;
};

}  // namespace

// In this order: a file vanishes before its bytes are given back.
struct ReplicaManager::Staged {
  DatasetId id;
  Charge charge;
  std::optional<Draft> fast_file;
  std::optional<Draft> slow_file;
  bool stays_fast = true;
  std::optional<Holdings::Busy> busy;

  bool here_already = false;  // another try of the task has made the same bytes

  ReplicaFile file() const { return {id, fast_file->bytes()}; }
};

Result<std::vector<ReplicaChange>> ReplicaManager::commit(const std::vector<PrivateCopy>& copies) {
  auto lock = holdings_.lock();
  std::vector<Staged> all;
  all.reserve(copies.size());
  for (const auto& copy : copies)
    all.push_back({.id = {copy.name, copy.version + 1}, .charge = {holdings_.ledger, copy.bytes}});
  Status status;
  for (size_t i = 0; status && i < copies.size(); ++i)
    status = stage(lock, copies[i].owner, all[i]);
  std::vector<ReplicaChange> published;
  for (size_t i = 0; status && i < all.size(); ++i) {
    status = publish(lock, all[i]);
    if (status) published.push_back(change_of(*holdings_.ledger.find(all[i].id)));
  }
  if (status) return published;
  // Before the bytes are given back, files that could not even be opened must go too.
  without_lock(lock, [&] {
    for (const auto& copy : copies) holdings_.tiers.fast.remove_private(copy.owner, copy.name);
  });
  commits_.discards += copies.size() - published.size();
  return tl::unexpected(status.error());
}

Status ReplicaManager::stage(Lock& lock, const std::string& owner, Staged& staged) {
  const DatasetId& id = staged.id;
  auto reclaimed =
      without_lock(lock, [&] { return holdings_.tiers.fast.reclaim_private(owner, id.name); });
  if (!reclaimed) return tl::unexpected(reclaimed.error());
  staged.fast_file.emplace(std::move(*reclaimed));
  charge_real_size(lock, staged);
  if (auto status = copy_down(lock, staged); !status) return status;
  const auto found = holdings_.wait_idle(lock, id, kNeverCancelled);
  if (!found) return tl::unexpected(found.error());
  staged.here_already = *found && ((*found)->fast() || (*found)->slow());
  holdings_.ledger.entry(id, staged.fast_file->bytes());
  staged.busy.emplace(holdings_, id);
  return {};
}

Status ReplicaManager::copy_down(Lock& lock, Staged& staged) {
  const uint64_t bytes = staged.fast_file->bytes();
  const bool copies = !holdings_.tiers.exclusive() || !staged.stays_fast;
  if (copies) {
    if (auto status = room.make_slow(lock, bytes); !status) return status;
    staged.charge.add_slow(bytes);
  }
  const auto digest = without_lock(lock, [&]() -> Result<ContentDigest> {
    const auto what =
        fmt::format("{}: committing {}", holdings_.tiers.slow.name(), describe(staged.id));
    if (!copies) return digest_file(staged.fast_file->fd(), bytes, what, kNeverCancelled);
    auto draft = holdings_.tiers.slow.draft(bytes);
    if (!draft) return tl::unexpected(draft.error());
    staged.slow_file.emplace(std::move(*draft));
    return copy_bytes(staged.fast_file->fd(), staged.slow_file->fd(), bytes, what, kNeverCancelled);
  });
  if (!digest) return tl::unexpected(digest.error());
  staged.id.digest = *digest;
  return {};
}

void ReplicaManager::charge_real_size(Lock& lock, Staged& staged) {
  const uint64_t bytes = staged.fast_file->bytes();
  if (bytes <= staged.charge.fast()) return staged.charge.set_fast(bytes);
  const uint64_t extra = bytes - staged.charge.fast();
  staged.stays_fast = false;
  if (!holdings_.ledger.can_pin(extra)) return;
  holdings_.ledger.pin_private(extra);
  EvictionTally tally;
  if (room.make_fast(lock, extra, kNeverCancelled, tally)) {
    staged.charge.add_fast(extra);
    staged.stays_fast = true;
  } else {
    holdings_.ledger.unpin_private(extra);
  }
}

Status ReplicaManager::publish(Lock& lock, Staged& staged) {
  const ReplicaFile file = staged.file();
  Replica& replica = *holdings_.ledger.find(staged.id);
  replica.doomed = false;
  if (staged.here_already) return publish_again(lock, staged, replica);
  if (staged.slow_file) {
    auto status = without_lock(lock, [&] {
      return holdings_.tiers.slow.publish(std::move(*staged.slow_file), file, true);
    });
    if (!status) return status;
    staged.charge.hand_over_slow();
    holdings_.ledger.order.set_slow(replica, true);
  }
  if (staged.stays_fast) {
    auto status = without_lock(lock, [&] {
      return holdings_.tiers.fast.publish(std::move(*staged.fast_file), file, true);
    });
    if (!status && !replica.slow()) return status;
    if (status) staged.charge.hand_over_fast();
    holdings_.ledger.order.set_fast(replica, status.has_value());
  }
  holdings_.ledger.order.set_home(replica, true);
  holdings_.ledger.order.touch(replica);
  ++commits_.commits;
  holdings_.changed(replica);
  return {};
}

Status ReplicaManager::publish_again(Lock& lock, Staged& staged, Replica& replica) {
  const ReplicaFile file = staged.file();
  const auto status = without_lock(lock, [&]() -> Status {
    staged.slow_file.reset();
    if (auto marked = replica.slow() ? holdings_.tiers.slow.set_home(file, true) : Status();
        !marked)
      return marked;
    return replica.fast() ? holdings_.tiers.fast.set_home(file, true) : Status();
  });
  if (!status) return status;
  holdings_.ledger.order.set_home(replica, true);
  holdings_.ledger.order.touch(replica);
  ++commits_.commits;
  holdings_.changed(replica);
  return {};
}

void ReplicaManager::discard(const PrivateCopy& copy) {
  holdings_.tiers.fast.remove_private(copy.owner, copy.name);
  auto lock = holdings_.lock();
  const Charge given_back(holdings_.ledger, copy.bytes);
  ++commits_.discards;
}

}  // namespace tierpilot

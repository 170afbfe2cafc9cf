// What a node holds: both tiers' files, the ledger of them and its lock. Keeps files and books in
// step; who moves replicas builds on it.
//
// A transfer owns the files of its entry (Replica::busy) while it works without the lock; others
// that need those files wait for it. A transfer that waits holds no entry that is in the fast
// tier, and making room in the slow tier never waits, so transfers cannot wait in a circle.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "daemon/memory/pool/copy.h"
#include "daemon/memory/pool/ledger.h"
#include "daemon/memory/pool/replicas/pool_tiers.h"
#include "daemon/memory/pool/types.h"

namespace tierpilot {

ReplicaChange change_of(const Replica& replica);

class Holdings {
 public:
  using Lock = std::unique_lock<std::mutex>;
  using OnChange = std::function<void(const ReplicaChange&)>;
  class Busy;  // in transfer.h

  // `on_change` is called with the lock held: it must only take a note.
  Holdings(const PoolOptions& options, PoolTiers tiers, OnChange on_change);

  PoolTiers tiers;
  PoolLedger ledger;  // under lock(), but for its budgets

  Lock lock() const { return Lock(mutex_); }
  // Until a transfer ends or wake() is called.
  void wait(Lock& lock) { idle_.wait(lock); }
  // Lets transfers that wait look at their cancel flags. Takes the lock.
  void wake();
  // Waits until no transfer owns the entry; null if there is no such entry (any more).
  Result<Replica*> wait_idle(Lock& lock, const DatasetId& id, const CancelFlag& cancel);

  // The entry is the caller's in all that follows, and so are its files.
  Status remove_fast(Lock& lock, Replica& replica);
  Status remove_slow(Lock& lock, Replica& replica);
  // A copy that turned out to have other bytes goes, and that is told.
  Status lose(Lock& lock, Replica& replica, PoolTier tier);
  void changed(const Replica& replica) { on_change_(change_of(replica)); }

 private:
  const OnChange on_change_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
};

}  // namespace tierpilot

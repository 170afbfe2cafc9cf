// How the replica manager's transfers own an entry and let go of the lock. Internal to it.
#pragma once

#include <utility>

#include "base/clock.h"
#include "daemon/memory/pool/replica_manager.h"

namespace tierpilot {

inline int64_t now_ns() {
  return system_clock().boot_ns();
}

// Owns an entry's files. Made and destroyed with the lock held.
class ReplicaManager::Busy {
 public:
  Busy(ReplicaManager& manager, DatasetId id) : manager_(&manager), id_(std::move(id)) {
    manager_->ledger_.find(id_)->busy = true;
  }
  Busy(Busy&& other) noexcept
      : manager_(std::exchange(other.manager_, nullptr)), id_(std::move(other.id_)) {}
  Busy& operator=(Busy&&) = delete;
  ~Busy() {
    if (!manager_) return;
    manager_->ledger_.find(id_)->busy = false;
    manager_->ledger_.erase_if_empty(id_);
    manager_->idle_.notify_all();
  }

 private:
  ReplicaManager* manager_;
  DatasetId id_;
};

// Runs `io` with the lock released and takes it again, whatever happens.
template <class Lock, class Io>
auto without_lock(Lock& lock, Io&& io) {
  struct Relock {
    explicit Relock(Lock& lock) : lock(lock) { lock.unlock(); }
    ~Relock() { lock.lock(); }
    Lock& lock;
  } relock(lock);
  return io();
}

}  // namespace tierpilot

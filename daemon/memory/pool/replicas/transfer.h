// How transfers own an entry and let go of the lock.
#pragma once

#include <utility>

#include "base/clock.h"
#include "daemon/memory/pool/replicas/holdings.h"

namespace tierpilot {

inline int64_t now_ns() {
  return system_clock().boot_ns();
}

// Owns an entry's files. Made and destroyed with the lock held.
class Holdings::Busy {
 public:
  Busy(Holdings& holdings, DatasetId id) : holdings_(&holdings), id_(std::move(id)) {
    holdings_->ledger.find(id_)->busy = true;
  }
  Busy(Busy&& other) noexcept
      : holdings_(std::exchange(other.holdings_, nullptr)), id_(std::move(other.id_)) {}
  Busy& operator=(Busy&&) = delete;
  ~Busy() {
    if (!holdings_) return;
    holdings_->ledger.find(id_)->busy = false;
    holdings_->ledger.erase_if_empty(id_);
    holdings_->idle_.notify_all();
  }

 private:
  Holdings* holdings_;
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

// A writer's own copy of a dataset, and the bytes that are kept for it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "daemon/memory/pool/ledger.h"

namespace tierpilot {

// In the fast tier.
struct PrivateCopy {
  std::string owner;
  std::string name;
  uint64_t version = 0;  // that it was copied from
  uint64_t bytes = 0;    // when it was made: what it is charged with
};

// Bytes that are given back unless a replica takes them over. Destroyed with the lock held.
class PrivateCharge {
 public:
  PrivateCharge(PoolLedger& ledger, uint64_t fast_bytes) : ledger_(&ledger), fast_(fast_bytes) {}
  PrivateCharge(PrivateCharge&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)), fast_(other.fast_), slow_(other.slow_) {}
  ~PrivateCharge() {
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

}  // namespace tierpilot

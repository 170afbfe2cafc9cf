// What lies in the device's memory, how many bytes that takes, and what of it may leave.
#pragma once

#include <algorithm>
#include <vector>

#include "policies/swap/machine/evictables.h"

namespace tierpilot::swap {

class Device {
 public:
  Device(size_t storages, int64_t budget_bytes)
      : budget_bytes_(budget_bytes), slots_(storages), evictables_(storages) {}

  bool fits(int64_t bytes) const { return bytes <= budget_bytes_ - used_bytes_; }
  int64_t used_bytes() const { return used_bytes_; }
  int64_t peak_bytes() const { return peak_bytes_; }
  bool resident(StorageId storage) const { return slots_[storage].resident; }
  bool evictable(StorageId storage) const { return evictables_.contains(storage); }
  const Evictables& evictables() const { return evictables_; }

  // Bytes for what is to lie here. Whoever takes them has seen that they fit.
  void take(int64_t bytes) {
    used_bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  }
  void give_back(int64_t bytes) { used_bytes_ -= bytes; }

  // It is here from now on and can leave, or is here no more. Its bytes are the caller's to count.
  void add(StorageId storage) {
    slots_[storage].resident = true;
    evictables_.add(storage);
  }
  void remove(StorageId storage) { slots_[storage].resident = false; }

  // Each lock keeps it from leaving until its unlock.
  void lock(StorageId storage) {
    ++slots_[storage].locks;
    evictables_.remove(storage);
  }
  // Whether it can leave again.
  bool unlock(StorageId storage) {
    auto& slot = slots_[storage];
    if (--slot.locks > 0 || slot.pinned) return false;
    evictables_.add(storage);
    return true;
  }
  // It never leaves.
  void pin(StorageId storage) {
    slots_[storage].pinned = true;
    evictables_.remove(storage);
  }
  // It is about to leave, and nobody else has to choose it.
  void withdraw(StorageId storage) { evictables_.remove(storage); }

 private:
  struct Slot {
    uint32_t locks = 0;
    bool resident = false, pinned = false;
  };

  int64_t budget_bytes_, used_bytes_ = 0, peak_bytes_ = 0;
  std::vector<Slot> slots_;
  Evictables evictables_;
};

}  // namespace tierpilot::swap

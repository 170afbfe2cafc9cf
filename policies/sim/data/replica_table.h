// Replicas by node and dataset. Open addressing with linear probing: one cache line for a look-up,
// which can be asked for ahead.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/large_pages.h"
#include "base/random.h"
#include "policies/sim/data/prefetch.h"

namespace tierpilot::sim {

template <class Replica>
class ReplicaTable {
 public:
  void expect(uint32_t node, uint32_t dataset) const {
    if (!slots_.empty()) prefetch(slots_[home(key(node, dataset))]);
  }
  // Null: none.
  Replica* find(uint32_t node, uint32_t dataset) const {
    return slots_.empty() ? nullptr : slots_[place(key(node, dataset))].replica;
  }
  void set(uint32_t node, uint32_t dataset, Replica& replica) {
    if (used_ >= slots_.size() / 2) grow();
    Slot& slot = slots_[place(key(node, dataset))];
    used_ += slot.replica == nullptr;
    slot = {key(node, dataset), &replica};
  }
  // One that is there.
  void erase(uint32_t node, uint32_t dataset) {
    size_t hole = place(key(node, dataset));
    slots_[hole] = {};
    --used_;
    // Those behind it move up unless that would be before their home.
    for (size_t at = next(hole); slots_[at].replica; at = next(at)) {
      if (distance(home(slots_[at].key), at) < distance(hole, at)) continue;
      slots_[hole] = std::exchange(slots_[at], {});
      hole = at;
    }
  }

 private:
  struct Slot {
    uint64_t key = 0;
    Replica* replica = nullptr;
  };
  static constexpr size_t kLeastSlots = 1024;

  static uint64_t key(uint32_t node, uint32_t dataset) { return uint64_t{node} << 32 | dataset; }
  size_t home(uint64_t key) const { return mixed_bits(key) & (slots_.size() - 1); }
  size_t next(size_t at) const { return (at + 1) & (slots_.size() - 1); }
  size_t distance(size_t from, size_t to) const { return (to - from) & (slots_.size() - 1); }
  // Of the key, or where it would be.
  size_t place(uint64_t key) const {
    size_t at = home(key);
    while (slots_[at].replica && slots_[at].key != key) at = next(at);
    return at;
  }
  void grow() {
    const auto old = std::exchange(slots_, {});
    slots_.resize(old.empty() ? kLeastSlots : 2 * old.size());
    for (const Slot& slot : old)
      if (slot.replica) slots_[place(slot.key)] = slot;
  }

  LargeVector<Slot> slots_;  // a power of two
  size_t used_ = 0;
};

}  // namespace tierpilot::sim

// Where every saved storage is, from its save to its end, and what that comes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "swap/host_pool.h"

namespace tierpilot::swap {

using Id = uint32_t;  // 0: none

struct Slot {
  enum class State : uint8_t {
    kFree,
    kHere,     // in the device, no copy
    kLeaving,  // in the device, its copy out waits or runs
    kCopied,   // in the device until the front end hears of the copy
    kAway,
    kComing,
    kBack,  // in the device, with a copy in the pool
  };
  State state = State::kFree;
  bool dropped = false, lost = false, used = false;
  bool kept = false;  // from one step to the next: none of a step's saves
  size_t save = 0;    // its place in the step, or among what is kept
  uint64_t step = 0;  // which step
  int64_t bytes = 0;
  std::byte* data = nullptr;
  Block block{};
  ComputeDevice::Stream stream = 0;    // in which it is made
  ComputeDevice::Mark after = 0;       // what its copy has to wait for
  Id told_before = 0, told_after = 0;  // in kCopied: neighbours among what is to be told
  bool to_tell = false;
};

struct SlotTotals {
  int64_t resident_bytes = 0, peak_bytes = 0;  // of steps' saves in the device, now and at most
  int64_t coming_bytes = 0;                    // of what is on its way back
  size_t leaving = 0, coming = 0, away = 0;    // copies out, copies in, and what could come back
  int64_t kept_away_bytes = 0;                 // of what is kept from one step to the next
  int64_t least_kept_away_bytes = 0;           // since reset_least()
};

// Not thread-safe. Ids have to be in the state that a function names.
class SlotTable {
 public:
  SlotTable() : slots_(1) {}

  // nullptr: nothing, or no more.
  Slot* find(Id id) { return known(id) ? &slots_[id] : nullptr; }
  const Slot* find(Id id) const { return known(id) ? &slots_[id] : nullptr; }
  // Whether its copy in is asked for and has not ended.
  bool coming(Id id) const { return known(id) && slots_[id].state == Slot::State::kComing; }
  const SlotTotals& totals() const { return totals_; }
  void reset_least() { totals_.least_kept_away_bytes = totals_.kept_away_bytes; }
  bool any_copied() const { return first_to_tell_ != 0; }

  // In the device from now on.
  Id add(int64_t bytes, const std::byte* data, bool kept = false, ComputeDevice::Stream stream = 0);
  // The block of its copy, for whoever frees it.
  [[nodiscard]] Block remove(Id id);

  // Of all that have one.
  template <class Each>
  void each_block(const Each& each) const {
    for (const auto& slot : slots_)
      if (slot.block.exists()) each(slot.block);
  }

  // kHere: its copy out is asked for.
  void leave(Id id);
  // kLeaving: the copy has ended. What was asked for meanwhile stays, with its copy.
  void copied_out(Id id, const Block& block);
  // kLeaving: there is no copy. Whether it stays for that: not where it was dropped.
  bool not_copied(Id id);
  // kLeaving, kCopied: it goes when the front end has heard of it; false in any other state.
  bool drop_later(Id id);
  // The next one in kCopied, each once; 0: none.
  Id next_copied();
  // kCopied: it was asked for before the front end had heard of it.
  void keep(Id id);
  // kAway: its copy in is asked for.
  void fetch(Id id, std::byte* data);
  // kComing: the copy has ended; `good`: the bytes are there.
  void copied_in(Id id, bool good);
  // kCopied, kBack: only the copy is left.
  void let_go(Id id);

 private:
  bool known(Id id) const {
    return id != 0 && id < slots_.size() && slots_[id].state != Slot::State::kFree;
  }
  void hold(const Slot& slot);     // in the device from now on
  void release(const Slot& slot);  // no more
  void away(const Slot& slot, int count);
  void announce(Id id);  // to the front end
  void is_told(Id id);

  std::vector<Slot> slots_;  // by id; 0 is never used
  std::vector<Id> free_;     // with room for all of them
  // What the front end has to hear of is a list through the slots: threads that copy take no
  // memory.
  Id first_to_tell_ = 0, last_to_tell_ = 0;
  SlotTotals totals_;
};

}  // namespace tierpilot::swap

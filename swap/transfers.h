// Carries out the copies of a session's storages on threads of its own, and knows how fast they
// really are.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "swap/host_pool.h"
#include "swap/lane.h"
#include "swap/pace.h"
#include "swap/slot_table.h"
#include "swap/statistics.h"

namespace tierpilot::swap {

struct CopyThreads {
  size_t out = 1, in = 2;
};

// All but pool() is for who holds the lock.
class Transfers {
 public:
  // Hears of a copy's end, under the lock; `in`: which way.
  using Ended = std::function<void(const Slot& slot, bool in)>;
  // `mutex` is the lock, of `slots` too; they and the device have to outlive this.
  Transfers(std::shared_ptr<TierSet> tiers, ComputeDevice& device, const CopyThreads& threads,
            std::mutex& mutex, SlotTable& slots, Ended ended);

  // Ask for a copy out of what is here, or of what is away into `data`, when the slot's stream, or
  // `stream`, has done what it was told before.
  void copy_out(Id id);
  void copy_in(Id id, std::byte* data, ComputeDevice::Stream stream);
  // Frees what the copy takes in the pool, with the id.
  void forget(Id id);
  // Until a copy's end has made it true.
  void wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& until);

  // As copies in have been; and as the slower way has been.
  Link link_in() const;
  Link link() const;
  // Of processors, that all copies have taken.
  int64_t processor_ns() const { return processor_ns_; }
  const HostPool& pool() const { return pool_; }
  // Why a copy out found no room since this was asked last; empty: none did.
  std::string take_refusal() { return std::exchange(refusal_, {}); }
  void add_to(Statistics& statistics) const;

 private:
  // Nothing of tiers is pinned any more when they end.
  struct Unpinned {
    ComputeDevice& device;
    ~Unpinned() { device.unpin(); }
  };
  // What is left in tiers when all copies have ended: others may go on with them.
  struct Leftovers {
    HostPool& pool;
    SlotTable& slots;
    ~Leftovers() {
      slots.each_block([this](const auto& block) { pool.free(block); });
    }
  };
  void ask(Lane& lane, Id id, ComputeDevice::Stream stream);
  void run_out(Id id, Copier& copier);
  void run_in(Id id, Copier& copier);
  Status reach(std::unique_lock<std::mutex>& lock, Id id);

  ComputeDevice& device_;
  HostPool pool_;
  Unpinned unpinned_{device_};
  Pace out_pace_, in_pace_;
  std::mutex& mutex_;
  SlotTable& slots_;
  Ended ended_;
  std::condition_variable changed_;
  int64_t processor_ns_ = 0;
  int64_t copies_out_ = 0, bytes_out_ = 0, refused_ = 0;
  std::string refusal_;
  int64_t copies_in_ = 0, bytes_in_ = 0, lost_ = 0;
  Leftovers leftovers_{pool_, slots_};
  Lane out_, in_;  // last: their threads end first
};

}  // namespace tierpilot::swap

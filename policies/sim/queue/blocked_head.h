// The tasks at the head of the queue and what each of them waits for, so that others may overtake
// it: as long as nothing happens to that dataset, or it is kept back, it need not be looked at
// again. Those that wait for nothing but their turn are among them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/scheduling/service_order.h"
#include "policies/sim/queue/task_queue.h"

namespace tierpilot::sim {

class BlockedHead {
 public:
  static constexpr uint32_t kUnknown = UINT32_MAX;   // or for nothing but its turn
  static constexpr uint32_t kHeld = UINT32_MAX - 1;  // for a node, until asked about
  static constexpr uint32_t kRoom = UINT32_MAX - 2;  // a gang for more room than there is
  struct Entry {
    QueuePlace place;
    uint32_t waits_for = kUnknown;  // a dataset, kHeld or kRoom; kUnknown: it has to be looked at
    uint32_t task() const { return static_cast<uint32_t>(place.second); }
  };

  // In the order of the queue.
  size_t size() const { return entries_.size(); }
  Entry& operator[](size_t i) { return entries_[i]; }
  // Of one that is there.
  size_t index_of(QueuePlace place) { return static_cast<size_t>(find(place) - entries_.begin()); }
  void append(QueuePlace place) { entries_.push_back({place}); }
  void erase(size_t i) { entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(i)); }

  // All before this one are known to wait.
  size_t known() const { return known_; }
  void set_known(size_t entries) { known_ = entries; }

  // A task has been queued; false: its place is beyond the head.
  bool insert(QueuePlace place) {
    const auto at = find(place);
    if (at == entries_.end()) return false;
    known_ = std::min(known_, static_cast<size_t>(at - entries_.begin()));
    entries_.insert(at, {place});
    return true;
  }
  // What lies beyond so many goes back into the queue.
  void cut(size_t most, TaskQueue& beyond) {
    for (; entries_.size() > most; entries_.pop_back()) beyond.insert(entries_.back().place);
    known_ = std::min(known_, entries_.size());
  }
  // A task that was held has to be looked at.
  void woken(QueuePlace place) {
    const auto at = find(place);
    if (at == entries_.end() || at->place != place) return;
    at->waits_for = kUnknown;
    known_ = std::min(known_, static_cast<size_t>(at - entries_.begin()));
  }
  // Who waits for the dataset may have it now, or wait in vain.
  void changed(uint32_t dataset) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].waits_for != dataset) continue;
      entries_[i].waits_for = kUnknown;
      known_ = std::min(known_, i);
    }
  }
  void all_changed() {
    for (Entry& entry : entries_)
      if (entry.waits_for != kHeld) entry.waits_for = kUnknown;
    known_ = 0;
  }

 private:
  std::vector<Entry>::iterator find(QueuePlace place) {
    return std::lower_bound(entries_.begin(), entries_.end(), place,
                            [](const Entry& entry, QueuePlace p) { return entry.place < p; });
  }

  std::vector<Entry> entries_;
  size_t known_ = 0;
};

}  // namespace tierpilot::sim

// Tasks that a policy keeps back for a node that is full now: to wait for the node that has the
// data can be cheaper, for the task and for all others, than to bring it to another one (delay
// scheduling: Zaharia et al., EuroSys 2010). What is held is asked about again when its node has
// room, and at the latest when it has waited as long as the placement that was declined would have
// taken, so that it takes at most about twice as long (the ski-rental rule: Karlin et al.,
// Algorithmica 3(1), 1988). In the coordinator as in the simulator.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "policies/scheduling/service_order.h"

namespace tierpilot {

class HeldTasks {
 public:
  // For no longer, whatever a task says that it takes.
  static constexpr double kLongest_s = 86'400;
  // No more at a time, as each is looked at whenever something changes.
  static constexpr size_t most(size_t nodes) { return std::max<size_t>(256, nodes); }

  // What waits for a node, beside what it has been given.
  struct Load {
    uint32_t units = 0;
    double operations = 0;  // of all units
  };
  struct Entry {
    uint32_t slot = 0;  // of the node that it waits for
    Load load;
    double place_s = 0;    // in the queue, see policies/scheduling/service_order.h
    int64_t since_ns = 0;  // first asked about
    int64_t until_ns = 0;  // from then on it has to be placed
    bool awake = false;    // to be asked about
  };

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  // Those of them that are not awake.
  size_t waiting() const {
    size_t waiting = 0;
    for (const auto& [slot, held] : slots_) waiting += held.waiting.size();
    return waiting;
  }
  // Null: it was never held, or placed since.
  const Entry* find(uint64_t task) const {
    const auto found = entries_.find(task);
    return found == entries_.end() ? nullptr : &found->second;
  }
  // Nothing has changed since it was held: it would be held again.
  bool waits(uint64_t task) const {
    const Entry* entry = find(task);
    return entry && !entry->awake;
  }
  Load load(uint32_t slot) const {
    const auto found = slots_.find(slot);
    return found == slots_.end() ? Load{} : found->second.load;
  }

  // `now_ns` and `until_ns` count the first time only. `has_units`: the node has some left, but too
  // few for this task; others may be luckier.
  void hold(QueuePlace place, uint32_t slot, Load load, int64_t now_ns, int64_t until_ns,
            bool has_units = false) {
    const auto [place_s, task] = place;
    const auto [at, first] = entries_.try_emplace(task);
    Entry& entry = at->second;
    if (first) entry.since_ns = now_ns, entry.until_ns = until_ns;
    if (!first && !entry.awake) leave(task, entry);
    entry.slot = slot;
    entry.place_s = place_s;
    entry.load = load;
    entry.awake = false;
    Slot& held = slots_[slot];
    held.waiting.insert(place);
    held.load.units += load.units;
    held.load.operations += load.operations;
    held.has_room = held.has_room && has_units;
    if (held.has_room) held.next = {place_s, task + 1};
  }
  // It is placed, or has ended.
  void forget(uint64_t task) {
    const auto found = entries_.find(task);
    if (found == entries_.end()) return;
    if (!found->second.awake) leave(task, found->second);
    entries_.erase(found);
  }

  // The node has room for somebody.
  void room(uint32_t slot) {
    const auto found = slots_.find(slot);
    if (found == slots_.end()) return;
    found->second.has_room = true;
    found->second.next = kFirst;
  }
  void wake(uint64_t task) {
    const auto found = entries_.find(task);
    if (found == entries_.end() || found->second.awake) return;
    leave(task, found->second);
    found->second.awake = true;
  }
  // All that wait for the node, as it is gone.
  std::set<uint64_t> wake_all(uint32_t slot) {
    return wake_if(slot, [](uint64_t) { return true; });
  }
  // Those of them of which `concerned` says so. The tasks that were woken.
  template <class Concerned>
  std::set<uint64_t> wake_if(uint32_t slot, Concerned concerned) {
    const auto found = slots_.find(slot);
    if (found == slots_.end()) return {};
    std::set<uint64_t> woken;
    for (const auto& [place_s, task] : found->second.waiting)
      if (concerned(task)) woken.insert(task);
    for (const uint64_t task : woken) wake(task);
    return woken;
  }
  // Others decide now, or nobody may hold any more.
  void wake_everything() {
    for (auto& [task, entry] : entries_) entry.awake = true;
    slots_.clear();
  }
  // Wakes the first of those that wait for a node with room; the next one's turn comes when the
  // node turns out to have room still. The tasks that were woken.
  std::vector<uint64_t> wake_for_room() {
    std::vector<uint64_t> first;
    for (auto& [slot, held] : slots_) {
      if (!held.has_room) continue;
      const auto next = held.waiting.lower_bound(held.next);
      held.has_room = next != held.waiting.end();
      if (held.has_room) first.push_back(next->second);
    }
    for (const uint64_t task : first) wake(task);
    return first;
  }
  void wake_due(int64_t now_ns) {
    std::vector<uint64_t> due;
    for (const auto& [task, entry] : entries_)
      if (entry.until_ns <= now_ns) due.push_back(task);
    for (const uint64_t task : due) wake(task);
  }
  // When the first of those that wait is due; INT64_MAX: none waits.
  int64_t next_due_ns() const {
    int64_t next = INT64_MAX;
    for (const auto& [task, entry] : entries_)
      if (!entry.awake) next = std::min(next, entry.until_ns);
    return next;
  }

 private:
  static constexpr QueuePlace kFirst{-HUGE_VAL, 0};

  struct Slot {
    std::set<QueuePlace> waiting;  // never empty
    Load load;
    bool has_room = false;
    QueuePlace next = kFirst;  // to be woken for it is this one or a later one
  };

  void leave(uint64_t task, const Entry& entry) {
    const auto found = slots_.find(entry.slot);
    Slot& held = found->second;
    held.waiting.erase({entry.place_s, task});
    held.load.units -= entry.load.units;
    // Sums of doubles do not come back by themselves.
    held.load.operations = std::max(0.0, held.load.operations - entry.load.operations);
    if (held.waiting.empty()) slots_.erase(found);
  }

  std::map<uint64_t, Entry> entries_;
  std::map<uint32_t, Slot> slots_;
};

}  // namespace tierpilot

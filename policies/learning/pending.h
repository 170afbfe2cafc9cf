// Experiences that still wait: for what was measured, which comes seconds or hours after the
// decision, and for the next sight, which comes with the next decided request.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policies/learning/replay.h"

namespace tierpilot {

template <class Sight>
struct PendingExperience {
  uint64_t id = 0;
  std::shared_ptr<const Sight> seen;
  std::shared_ptr<const Sight> next;  // null: no later request was decided yet
  uint32_t action = 0;
  std::optional<double> reward;
};

// Not thread-safe.
template <class Sight>
class PendingTable {
 public:
  using Entry = PendingExperience<Sight>;

  // Beyond `capacity` the oldest gives way.
  explicit PendingTable(size_t capacity) : capacity_(capacity) {}

  // A request was decided, or decided anew: then it keeps its place.
  void decided(uint64_t id, std::shared_ptr<const Sight> seen, uint32_t action) {
    if (const auto known = entries_.find(id); known != entries_.end()) {
      known->second.seen = std::move(seen);
      known->second.action = action;
      return;
    }
    if (newest_) {
      if (const auto previous = entries_.find(*newest_); previous != entries_.end()) {
        previous->second.next = seen;
        complete_if_known(*newest_);
      }
    }
    newest_ = id;
    entries_.emplace(id, Entry{id, std::move(seen), nullptr, action, std::nullopt});
    order_.push_back(id);
    while (entries_.size() > capacity_) {
      entries_.erase(order_.front());
      order_.pop_front();
    }
    while (!order_.empty() && !contains(order_.front())) order_.pop_front();
    // An old entry at the front would keep the gaps behind it for ever.
    if (order_.size() > 2 * entries_.size() + kSpareGaps)
      std::erase_if(order_, [this](uint64_t gone) { return !contains(gone); });
  }

  // False: the id is not (or no longer) here.
  bool outcome(uint64_t id, double reward) {
    const auto entry = entries_.find(id);
    if (entry == entries_.end() || entry->second.reward) return false;
    entry->second.reward = reward;
    complete_if_known(id);
    return true;
  }
  bool abandon(uint64_t id) { return entries_.erase(id) != 0; }
  bool contains(uint64_t id) const { return entries_.count(id) != 0; }
  // Null when the id is not here.
  const Entry* find(uint64_t id) const {
    const auto entry = entries_.find(id);
    return entry == entries_.end() ? nullptr : &entry->second;
  }
  // Experiences that became complete since the last call.
  std::vector<Experience<Sight>> take_complete() { return std::exchange(complete_, {}); }

  size_t size() const { return entries_.size(); }
  // Oldest decision first; restore() expects the same order.
  std::vector<Entry> snapshot() const {
    std::vector<Entry> all;
    for (uint64_t id : order_)
      if (const auto entry = entries_.find(id); entry != entries_.end())
        all.push_back(entry->second);
    return all;
  }
  void restore(std::vector<Entry> entries) {
    for (Entry& entry : entries) {
      order_.push_back(entry.id);
      newest_ = entry.id;
      entries_.insert_or_assign(entry.id, std::move(entry));
    }
  }

 private:
  void complete_if_known(uint64_t id) {
    const auto entry = entries_.find(id);
    Entry& waiting = entry->second;
    if (!waiting.next || !waiting.reward) return;
    complete_.push_back({waiting.seen, waiting.next, waiting.action, *waiting.reward});
    entries_.erase(entry);
  }

  static constexpr size_t kSpareGaps = 64;

  size_t capacity_;
  std::unordered_map<uint64_t, Entry> entries_;
  std::deque<uint64_t> order_;  // ids by decision, with gaps where an entry has gone
  std::optional<uint64_t> newest_;
  std::vector<Experience<Sight>> complete_;
};

}  // namespace tierpilot

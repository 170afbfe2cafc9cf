#include "policies/dqn/pending.h"

#include <utility>

namespace tierpilot {

void PendingTable::decided(uint64_t id, std::shared_ptr<const Observation> seen, uint32_t action) {
  if (const auto known = entries_.find(id); known != entries_.end()) {
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
  entries_.emplace(id, PendingExperience{id, std::move(seen), nullptr, action, std::nullopt});
  order_.push_back(id);
  while (entries_.size() > capacity_) {
    dropped_ += entries_.erase(order_.front());
    order_.pop_front();
  }
  while (!order_.empty() && !contains(order_.front())) order_.pop_front();
}

bool PendingTable::outcome(uint64_t id, double reward) {
  const auto entry = entries_.find(id);
  if (entry == entries_.end() || entry->second.reward) return false;
  entry->second.reward = reward;
  complete_if_known(id);
  return true;
}

bool PendingTable::abandon(uint64_t id) {
  return entries_.erase(id) != 0;
}

void PendingTable::complete_if_known(uint64_t id) {
  const auto entry = entries_.find(id);
  PendingExperience& waiting = entry->second;
  if (!waiting.next || !waiting.reward) return;
  complete_.push_back({waiting.seen, waiting.next, waiting.action, *waiting.reward});
  entries_.erase(entry);
}

std::vector<Experience> PendingTable::take_complete() {
  return std::exchange(complete_, {});
}

std::vector<PendingExperience> PendingTable::snapshot() const {
  std::vector<PendingExperience> all;
  for (uint64_t id : order_)
    if (const auto entry = entries_.find(id); entry != entries_.end()) all.push_back(entry->second);
  return all;
}

void PendingTable::restore(std::vector<PendingExperience> entries) {
  for (PendingExperience& entry : entries) {
    order_.push_back(entry.id);
    newest_ = entry.id;
    entries_.insert_or_assign(entry.id, std::move(entry));
  }
}

}  // namespace tierpilot

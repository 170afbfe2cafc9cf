#include "daemon/agent/link/event_stream.h"

#include <algorithm>
#include <map>

namespace tierpilot::agent {

void EventStream::add(EventBody body) {
  if (auto* replica = std::get_if<ReplicaChange>(&body)) {
    std::erase_if(unsent_, [&](const EventBody& other) {
      const auto* older = std::get_if<ReplicaChange>(&other);
      const bool replaced = older && older->id() == replica->id();
      replica->damaged |= replaced && older->damaged;
      return replaced;
    });
  }
  if (const auto* start = std::get_if<StartedEvent>(&body))
    std::erase_if(unsent_, [&](const EventBody& other) {
      const auto* older = std::get_if<StartedEvent>(&other);
      return older && older->attempt == start->attempt;
    });
  // A unit that fails again and again while the coordinator is away is told of once.
  if (const auto* fault = std::get_if<UnitFaultEvent>(&body))
    std::erase_if(unsent_, [&](const EventBody& other) {
      const auto* older = std::get_if<UnitFaultEvent>(&other);
      return older && older->unit == fault->unit && older->kind == fault->kind;
    });
  unsent_.push_back(std::move(body));
  if (on_pending_) on_pending_();
}

std::vector<const Event*> EventStream::batch(size_t max_events) {
  while (sent_.size() < max_events && !unsent_.empty()) {
    sent_.push_back({next_sequence_++, std::move(unsent_.front())});
    unsent_.pop_front();
  }
  std::vector<const Event*> events;
  for (const auto& event : sent_) {
    if (events.size() == max_events) break;
    events.push_back(&event);
  }
  return events;
}

std::vector<AttemptId> EventStream::acknowledge(uint64_t sequence) {
  std::vector<AttemptId> exited;
  while (!sent_.empty() && sent_.front().sequence <= sequence) {
    if (const auto* exit = std::get_if<ExitedEvent>(&sent_.front().body))
      exited.push_back(exit->attempt);
    sent_.pop_front();
  }
  return exited;
}

void EventStream::registered(const std::vector<ReplicaChange>& all, size_t told) {
  std::map<DatasetId, const ReplicaChange*> present;
  for (const auto& replica : all) present[replica.id()] = &replica;
  std::erase_if(unsent_,
                [](const EventBody& body) { return std::holds_alternative<ReplicaChange>(body); });

  // What an exit wrote is a fact of that moment: the present state must follow it.
  std::vector<ReplicaChange> rewritten;
  const auto note_written = [&](const EventBody& body) {
    if (const auto* exit = std::get_if<ExitedEvent>(&body))
      for (const auto& written : exit->exit.written)
        if (auto now = present.find(written.id()); now != present.end())
          rewritten.push_back(*now->second);
  };
  for (auto& event : sent_) {
    note_written(event.body);
    auto* replica = std::get_if<ReplicaChange>(&event.body);
    if (!replica) continue;
    const bool damaged = replica->damaged;
    if (auto now = present.find(replica->id()); now != present.end())
      *replica = *now->second;
    else
      replica->in_fast = replica->in_slow = replica->home = false;
    replica->damaged = damaged;
  }
  for (const auto& body : unsent_) note_written(body);
  for (auto& replica : rewritten) add(std::move(replica));
  // Not by add(), which looks through all that is unsent: these are as many as the node has
  // datasets.
  if (told < all.size())
    unsent_.insert(unsent_.end(), all.begin() + static_cast<ptrdiff_t>(told), all.end());
}

}  // namespace tierpilot::agent

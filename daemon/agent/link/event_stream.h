// What the coordinator must hear, in order, until it says it has.
//
// An event gets its sequence number when it is first sent, so what has not been sent can still be
// coalesced: a dataset has at most one unsent replica event, its newest state. Memory is therefore
// bounded by datasets and held attempts, however long the coordinator is away.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "daemon/agent/node/model.h"
#include "model/registration.h"

namespace tierpilot::agent {

// Owned by the event loop's thread.
class EventStream {
 public:
  static constexpr size_t kBatchEvents = kEventsInUpdate;

  // `on_pending` is called when an event was added.
  explicit EventStream(std::function<void()> on_pending = {})
      : on_pending_(std::move(on_pending)) {}

  void add(EventBody body);

  // The oldest unacknowledged events; numbers those that go out for the first time. The pointers
  // hold until the next call that is not const.
  std::vector<const Event*> batch(size_t max_events = kBatchEvents);
  // Drops events up to `sequence`; returns the attempts whose exits were among them.
  std::vector<AttemptId> acknowledge(uint64_t sequence);
  // A registration carries `all` replicas: older replica events must not overwrite it. Unsent ones
  // are dropped, sent ones take the present state (the coordinator may have seen that number).
  // Only the first `told` of them fit the registration: the others follow as events.
  void registered(const std::vector<ReplicaChange>& all, size_t told = SIZE_MAX);

  bool empty() const { return sent_.empty() && unsent_.empty(); }
  size_t size() const { return sent_.size() + unsent_.size(); }

 private:
  std::deque<Event> sent_;  // numbered, rising by one
  std::deque<EventBody> unsent_;
  uint64_t next_sequence_ = 1;
  std::function<void()> on_pending_;
};

}  // namespace tierpilot::agent

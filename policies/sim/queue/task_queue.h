// The coordinator's queue beyond its head (blocked_head.h): tasks by their places
// (queue_places.h). Only its first is ever asked for, so it is a heap.
#pragma once

#include <cstddef>

#include "policies/scheduling/service_order.h"
#include "policies/sim/events/event_heap.h"

namespace tierpilot::sim {

class TaskQueue {
 public:
  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.entries().size(); }

  void insert(QueuePlace place) { waiting_.push(place); }
  // Not of an empty queue.
  QueuePlace take_first() {
    const QueuePlace first = waiting_.top();
    waiting_.erase(0);
    return first;
  }

 private:
  struct Before {
    bool operator()(const QueuePlace& a, const QueuePlace& b) const {
      return a.first != b.first ? a.first < b.first : a.second < b.second;
    }
  };
  struct Forget {
    void operator()(const QueuePlace&, size_t) const {}
  };

  EventHeap<QueuePlace, Before, Forget> waiting_;
};

}  // namespace tierpilot::sim

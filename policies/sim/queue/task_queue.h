// The coordinator's queue beyond its head (blocked_head.h): tasks by their places
// (policies/scheduling/service_order.h), equals by their numbers, which is the order of arrival.
// Only its first is ever asked for, so it is a heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/large_pages.h"
#include "policies/scheduling/service_order.h"
#include "policies/sim/events/event_heap.h"

namespace tierpilot::sim {

class TaskQueue {
 public:
  explicit TaskQueue(size_t tasks) : places_s_(tasks) {}
  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.entries().size(); }
  // Where it stands, or stood, here or in the head.
  QueuePlace place(uint32_t task) const { return {places_s_[task], task}; }
  void set_place(uint32_t task, double place_s) { places_s_[task] = place_s; }

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

  LargeVector<double> places_s_;  // by task
  EventHeap<QueuePlace, Before, Forget> waiting_;
};

}  // namespace tierpilot::sim

// Events in the order in which they will be taken, so that those that are soon to come can be shown
// ahead.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "policies/sim/events/event.h"
#include "policies/sim/events/event_heap.h"

namespace tierpilot::sim {

class EventLane {
 public:
  bool empty() const { return head_ == events_.size(); }
  size_t size() const { return events_.size() - head_; }
  const Event& front() const { return events_[head_]; }
  const Event& back() const { return events_.back(); }
  // One that comes after all others.
  void push(const Event& event) {
    // What has been taken is given back when it is more than what is left.
    if (events_.size() == events_.capacity() && head_ > events_.size() / 2) {
      events_.erase(events_.begin(), events_.begin() + static_cast<ptrdiff_t>(head_));
      head_ = 0;
    }
    events_.push_back(event);
  }
  void insert(const Event& event) {
    push(event);
    for (size_t at = events_.size() - 1; at > head_ && Sooner{}(event, events_[at - 1]); --at)
      std::swap(events_[at], events_[at - 1]);
  }
  void pop() { ++head_; }
  void pop_back() { events_.pop_back(); }
  // visit(event, Soon); each event is shown three times on its way.
  template <class Visit>
  void show_ahead(Visit visit) const {
    const auto show = [&](size_t ahead, Soon soon) {
      if (head_ + ahead < events_.size()) visit(events_[head_ + ahead], soon);
    };
    show(12, Soon::kLater);
    show(7, Soon::kSoon);
    show(3, Soon::kNext);
  }

 private:
  std::vector<Event> events_;
  size_t head_ = 0;
};

// Events that come in any order: the next few in a lane, the others in a heap until their turn.
class UpcomingEvents {
 public:
  bool empty() const { return next_.empty(); }
  const Event& front() const { return next_.front(); }
  void push(const Event& event) {
    const bool soon = later_.empty() && next_.size() < kLeast;
    if (!soon && !Sooner{}(event, next_.back())) return later_.push(event);
    next_.insert(event);
    if (next_.size() <= kMost) return;
    later_.push(next_.back());
    next_.pop_back();
  }
  void pop() {
    next_.pop();
    if (next_.size() >= kLeast || later_.empty()) return;
    next_.push(later_.top());
    later_.erase(0);
  }
  template <class Visit>
  void show_ahead(Visit visit) const {
    next_.show_ahead(visit);
  }

 private:
  static constexpr size_t kLeast = 14;  // as far as is shown ahead
  static constexpr size_t kMost = 2 * kLeast;
  struct Forget {
    void operator()(const Event&, size_t) const {}
  };

  EventLane next_;  // empty: there are none
  EventHeap<Event, Sooner, Forget> later_;
};

}  // namespace tierpilot::sim

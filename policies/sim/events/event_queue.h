// What is to happen, in order of virtual time; equal times in the order in which they were asked
// for, so that a run can be repeated to the bit.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "policies/sim/events/event.h"
#include "policies/sim/events/event_heap.h"
#include "policies/sim/events/event_lane.h"

namespace tierpilot::sim {

class EventQueue {
 public:
  EventQueue() : flows_({&flow_places_}) {}

  void push(int64_t at_ns, EventKind kind, uint32_t subject, uint32_t generation) {
    others_.push(make(due(at_ns), kind, subject, generation));
  }
  // Events that all come after the same delay are in order by themselves: none may be earlier than
  // the one pushed before it in its lane.
  enum class Lane : uint8_t { kDispatch, kReport };
  void push(Lane lane, int64_t at_ns, EventKind kind, uint32_t subject, uint32_t generation) {
    lanes_[static_cast<size_t>(lane)].push(make(due(at_ns), kind, subject, generation));
  }
  Due due(int64_t at_ns) { return {at_ns, next_order_++}; }
  // A link has one event, that of its flow that is due first. It changes with every flow there.
  void set_flow(uint32_t link, Due due, uint32_t flow) {
    if (link >= flow_places_.size()) flow_places_.resize(link + 1, kNowhere);
    const Event event = make(due, EventKind::kFlow, link, flow);
    const uint32_t place = flow_places_[link];
    place == kNowhere ? flows_.push(event) : flows_.replace(place, event);
  }
  void forget_flow(uint32_t link) {
    if (link >= flow_places_.size() || flow_places_[link] == kNowhere) return;
    flows_.erase(flow_places_[link]);
    flow_places_[link] = kNowhere;
  }

  bool empty() const { return first() == nullptr; }
  int64_t next_ns() const {
    const Event* next = first();
    return next ? next->at_ns : INT64_MAX;
  }
  // Not of an empty queue.
  Event pop() {
    const Event* next = first();
    const Event event = *next;
    for (EventLane& lane : lanes_)
      if (!lane.empty() && next == &lane.front()) return lane.pop(), event;
    if (event.kind == static_cast<uint64_t>(EventKind::kFlow))
      forget_flow(event.subject);
    else
      others_.pop();
    return event;
  }
  // Shows events that will probably be taken soon, of those that are kept like `taken` was:
  // visit(event, Soon). Each is shown a few times on its way.
  template <class Visit>
  void show_ahead(const Event& taken, Visit visit) const {
    switch (static_cast<EventKind>(taken.kind)) {
      case EventKind::kReceived:
        return lanes_[static_cast<size_t>(Lane::kDispatch)].show_ahead(visit);
      case EventKind::kReported:
        return lanes_[static_cast<size_t>(Lane::kReport)].show_ahead(visit);
      case EventKind::kFlow:
        return show_top(flows_.entries(), visit);
      default:
        return others_.show_ahead(visit);
    }
  }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  struct Remember {
    std::vector<uint32_t>* places;
    void operator()(const Event& event, size_t place) const {
      (*places)[event.subject] = static_cast<uint32_t>(place);
    }
  };
  template <class Visit>
  static void show_top(const std::vector<Event>& heap, Visit visit) {
    constexpr size_t kNearTop = 5;  // the first one and its children
    for (size_t i = 1; i < std::min(heap.size(), kNearTop); ++i)
      visit(heap[i], Soon::kLater), visit(heap[i], Soon::kSoon);
    if (!heap.empty()) visit(heap[0], Soon::kNext);
  }
  // Null: none.
  const Event* first() const {
    const Event* first = nullptr;
    const auto offer = [&](const Event& event) {
      if (!first || Sooner{}(event, *first)) first = &event;
    };
    if (!others_.empty()) offer(others_.front());
    if (!flows_.empty()) offer(flows_.top());
    for (const EventLane& lane : lanes_)
      if (!lane.empty()) offer(lane.front());
    return first;
  }

  static Event make(Due due, EventKind kind, uint32_t subject, uint32_t generation) {
    return {due.at_ns, due.order, static_cast<uint64_t>(kind), subject, generation};
  }

  std::array<EventLane, 2> lanes_;
  std::vector<uint32_t> flow_places_;  // by link
  EventHeap<Event, Sooner, Remember> flows_;
  UpcomingEvents others_;
  uint64_t next_order_ = 0;
};

// Of seconds, rounded up so that nothing takes no time; too long ones end beyond any run.
inline int64_t after_s(int64_t now_ns, double seconds) {
  constexpr double kEndless = 4e18;
  const double at = static_cast<double>(now_ns) + seconds * 1e9;
  return at < kEndless ? now_ns + static_cast<int64_t>(seconds * 1e9 + 0.999999) : INT64_MAX;
}

}  // namespace tierpilot::sim

// What is to happen, in order of virtual time; equal times in the order in which they were asked
// for, so that a run can be repeated to the bit.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "policies/sim/event_heap.h"

namespace tierpilot::sim {

enum class EventKind : uint8_t {
  kReceived,      // subject: task; the node has it
  kFlow,          // subject: link; the flow that is the generation may have ended
  kCores,         // subject: machine with shared cores; a task may have ended
  kRunEnd,        // subject: task
  kReported,      // subject: task; the coordinator knows that it has ended
  kLost,          // subject: task; its node's lease has ended
  kNodeFailed,    // subject: node
  kNodeRepaired,  // subject: node
  kGpuFailed,     // subject: node * 64 + GPU
  kGpuRepaired,   // subject: node * 64 + GPU
  kHeldLongest,   // subject: task; it may be kept back no longer
};

struct Event {
  int64_t at_ns;
  uint64_t order : 56;
  uint64_t kind : 8;
  uint32_t subject;
  uint32_t generation;  // an event of an older generation is void
};

// When something is to happen; equal times in the order in which they were asked for.
struct Due {
  int64_t at_ns = INT64_MAX;
  uint64_t order = 0;
  auto operator<=>(const Due&) const = default;
};

enum class Soon : uint8_t { kLater, kSoon, kNext };

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
    for (InOrder& lane : lanes_)
      if (!lane.empty() && next == &lane.front()) return lane.pop(), event;
    if (event.kind == static_cast<uint64_t>(EventKind::kFlow))
      forget_flow(event.subject);
    else
      others_.erase(0);
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
        return show_top(others_.entries(), visit);
    }
  }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  struct Before {
    bool operator()(const Event& a, const Event& b) const {
      return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.order < b.order;
    }
  };
  struct Forget {
    void operator()(const Event&, size_t) const {}
  };
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
  // First in, first out.
  class InOrder {
   public:
    bool empty() const { return head_ == events_.size(); }
    const Event& front() const { return events_[head_]; }
    void push(const Event& event) {
      // What has been taken is given back when it is more than what is left.
      if (events_.size() == events_.capacity() && head_ > events_.size() / 2) {
        events_.erase(events_.begin(), events_.begin() + static_cast<ptrdiff_t>(head_));
        head_ = 0;
      }
      events_.push_back(event);
    }
    void pop() { ++head_; }
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

  // Null: none.
  const Event* first() const {
    const Event* first = nullptr;
    const auto offer = [&](const Event& event) {
      if (!first || Before{}(event, *first)) first = &event;
    };
    if (!others_.empty()) offer(others_.top());
    if (!flows_.empty()) offer(flows_.top());
    for (const InOrder& lane : lanes_)
      if (!lane.empty()) offer(lane.front());
    return first;
  }

  static Event make(Due due, EventKind kind, uint32_t subject, uint32_t generation) {
    return {due.at_ns, due.order, static_cast<uint64_t>(kind), subject, generation};
  }

  std::array<InOrder, 2> lanes_;
  std::vector<uint32_t> flow_places_;  // by link
  EventHeap<Event, Before, Remember> flows_;
  EventHeap<Event, Before, Forget> others_;
  uint64_t next_order_ = 0;
};

// Of seconds, rounded up so that nothing takes no time; too long ones end beyond any run.
inline int64_t after_s(int64_t now_ns, double seconds) {
  constexpr double kEndless = 4e18;
  const double at = static_cast<double>(now_ns) + seconds * 1e9;
  return at < kEndless ? now_ns + static_cast<int64_t>(seconds * 1e9 + 0.999999) : INT64_MAX;
}

}  // namespace tierpilot::sim

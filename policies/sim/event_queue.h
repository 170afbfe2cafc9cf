// What is to happen, in order of virtual time; equal times in the order in which they were asked
// for, so that a run can be repeated to the bit.
#pragma once

#include <boost/heap/d_ary_heap.hpp>
#include <cstdint>

namespace tierpilot::sim {

enum class EventKind : uint8_t {
  kReceived,      // subject: task; the node has it
  kFlow,          // subject: flow; it may have ended
  kCores,         // subject: machine with shared cores; a task may have ended
  kRunEnd,        // subject: task
  kReported,      // subject: task; the coordinator knows that it has ended
  kLost,          // subject: task; its node's lease has ended
  kNodeFailed,    // subject: node
  kNodeRepaired,  // subject: node
  kGpuFailed,     // subject: node * 64 + GPU
  kGpuRepaired,   // subject: node * 64 + GPU
};

struct Event {
  int64_t at_ns;
  uint64_t order : 56;
  uint64_t kind : 8;
  uint32_t subject;
  uint32_t generation;  // an event of an older generation is void
};

class EventQueue {
 public:
  void push(int64_t at_ns, EventKind kind, uint32_t subject, uint32_t generation) {
    heap_.push({at_ns, next_order_++, static_cast<uint64_t>(kind), subject, generation});
  }
  bool empty() const { return heap_.empty(); }
  int64_t next_ns() const { return heap_.empty() ? INT64_MAX : heap_.top().at_ns; }
  Event pop() {
    const Event event = heap_.top();
    heap_.pop();
    return event;
  }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.order > b.order;
    }
  };
  boost::heap::d_ary_heap<Event, boost::heap::arity<4>, boost::heap::compare<Later>> heap_;
  uint64_t next_order_ = 0;
};

// Of seconds, rounded up so that nothing takes no time; too long ones end beyond any run.
inline int64_t after_s(int64_t now_ns, double seconds) {
  constexpr double kEndless = 4e18;
  const double at = static_cast<double>(now_ns) + seconds * 1e9;
  return at < kEndless ? now_ns + static_cast<int64_t>(seconds * 1e9 + 0.999999) : INT64_MAX;
}

}  // namespace tierpilot::sim

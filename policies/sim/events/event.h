// What an event is, and which of two comes first.
#pragma once

#include <compare>
#include <cstdint>

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

struct Sooner {
  bool operator()(const Event& a, const Event& b) const {
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.order < b.order;
  }
};

}  // namespace tierpilot::sim

// Transfers that share links. A flow runs at the smallest of its links' equal shares; whenever one
// begins or ends on a link, the others there are told their new speed.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/large_pages.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/events/event_queue.h"

namespace tierpilot::sim {

class Flows {
 public:
  static constexpr size_t kMaxLinks = 3;

  explicit Flows(EventQueue& events) : events_(events) {}

  uint32_t add_link(double bytes_per_s);
  // Ends with an event kFlow, for which take_ended() gives `owner`. The flow's id is good until
  // then, or until it is cancelled.
  uint32_t start(int64_t now_ns, double bytes, std::initializer_list<uint32_t> links,
                 uint32_t owner);
  // Asks for the memory of what an event will touch; the links once the flow is there.
  void expect(uint32_t flow) const { prefetch(flows_[flow]); }
  void expect_links(uint32_t flow) const;
  uint32_t owner(uint32_t flow) const { return flows_[flow].owner; }
  void cancel(int64_t now_ns, uint32_t flow);
  // The owner, if the flow has ended now; nothing when it still has to wait.
  std::optional<uint32_t> take_ended(const Event& event);

 private:
  static constexpr uint32_t kNoFlow = UINT32_MAX, kNoLink = UINT32_MAX;

  struct alignas(
      64) Flow {  // a cache line: those of a link are all looked at when its share changes
    double left_bytes = 0;  // at settled_ns
    double bytes_per_s = 0;
    int64_t settled_ns = 0;
    Due due;                        // may be too early: it is asked for again then
    double others_bytes_per_s = 0;  // its links but the first have no smaller share
    uint32_t owner = 0;
    std::array<uint32_t, kMaxLinks> links{};
  };
  struct alignas(64) Link {
    double bytes_per_s = 0;
    double share = 0;  // for each of its members
    // Of those whose first link this is; the link has one event, which is this one's. There may be
    // hundreds, and all of them are due anew when the share grows.
    uint32_t first_due = kNoFlow;
    boost::container::small_vector<uint32_t, 4> members;  // most have no more

    void divide() {
      share = bytes_per_s / static_cast<double>(members.empty() ? 1 : members.size());
    }
  };

  double share(Flow& flow) const;
  void settle(int64_t now_ns, Flow& flow, double bytes_per_s);
  void schedule(int64_t now_ns, Flow& flow);
  void slow_down(int64_t now_ns, uint32_t link, uint32_t beginner);
  void speed_up(int64_t now_ns, uint32_t link, uint32_t ended);
  void remove(int64_t now_ns, uint32_t flow);
  // The flow is due earlier than before.
  void offer(uint32_t flow);
  void find_first_due(uint32_t link);
  void set_first_due(uint32_t link, uint32_t flow);

  EventQueue& events_;
  LargeVector<Link> links_;
  LargeVector<Flow> flows_;
  std::vector<uint32_t> free_;
};

}  // namespace tierpilot::sim

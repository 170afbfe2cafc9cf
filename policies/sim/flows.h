// Transfers that share links. A flow runs at the smallest of its links' equal shares; whenever one
// begins or ends on a link, the others there are told their new speed.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "policies/sim/event_queue.h"

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
  void cancel(int64_t now_ns, uint32_t flow);
  // The owner, if the flow has ended now; nothing when it still has to wait.
  std::optional<uint32_t> take_ended(const Event& event);

 private:
  struct alignas(64) Flow {  // a cache line
    double left_bytes = 0;
    double bytes_per_s = 0;
    int64_t settled_ns = 0;
    uint32_t owner = 0;
    uint32_t links_used = 0;
    std::array<uint32_t, kMaxLinks> links{};
    std::array<uint32_t, kMaxLinks> places{};  // in the links' lists
  };
  struct Member {
    uint32_t flow;
    uint32_t place;  // which of the flow's links this is
  };
  struct alignas(64) Link {
    double bytes_per_s = 0;
    double share = 0;                                   // for each of its members
    boost::container::small_vector<Member, 3> members;  // most have no more

    void divide();
  };

  double share(const Flow& flow) const;
  void retime(int64_t now_ns, uint32_t flow, double bytes_per_s);
  void schedule(int64_t now_ns, uint32_t flow);
  void remove(int64_t now_ns, uint32_t flow);

  EventQueue& events_;
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<uint32_t> free_;
};

}  // namespace tierpilot::sim

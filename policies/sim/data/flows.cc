#include "policies/sim/data/flows.h"

#include <algorithm>
#include <limits>

namespace tierpilot::sim {

uint32_t Flows::add_link(double bytes_per_s) {
  Link& link = links_.emplace_back();
  link.bytes_per_s = link.share = bytes_per_s;
  return static_cast<uint32_t>(links_.size() - 1);
}

uint32_t Flows::start(int64_t now_ns, double bytes, std::initializer_list<uint32_t> links,
                      uint32_t owner) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const uint32_t id = free_.back();
  free_.pop_back();
  Flow& flow = flows_[id];
  flow = {.left_bytes = bytes, .settled_ns = now_ns, .owner = owner};
  flow.links.fill(kNoLink);
  std::copy(links.begin(), links.end(), flow.links.begin());
  for (const uint32_t link : links) {
    links_[link].members.push_back(id);
    links_[link].divide();
  }
  flow.bytes_per_s = share(flow);
  schedule(now_ns, flow);
  offer(id);
  for (const uint32_t link : links) slow_down(now_ns, link, id);
  return id;
}

inline double Flows::share(Flow& flow) const {
  const double first = links_[flow.links[0]].share;
  if (first <= flow.others_bytes_per_s) return first;  // without a look at the others
  flow.others_bytes_per_s = std::numeric_limits<double>::infinity();
  for (size_t i = 1; i < kMaxLinks && flow.links[i] != kNoLink; ++i)
    flow.others_bytes_per_s = std::min(flow.others_bytes_per_s, links_[flow.links[i]].share);
  return std::min(first, flow.others_bytes_per_s);
}

inline void Flows::settle(int64_t now_ns, Flow& flow, double bytes_per_s) {
  flow.left_bytes -= static_cast<double>(now_ns - flow.settled_ns) * 1e-9 * flow.bytes_per_s;
  flow.settled_ns = now_ns;
  flow.bytes_per_s = bytes_per_s;
}

inline void Flows::schedule(int64_t now_ns, Flow& flow) {
  flow.due = events_.due(after_s(now_ns, std::max(flow.left_bytes, 0.0) / flow.bytes_per_s));
}

// A flow has begun on the link, so nobody there has become faster: only this link can hold the
// others back more than before. They are due too early now and are then asked for again, which is
// cheaper than twice now.
void Flows::slow_down(int64_t now_ns, uint32_t index, uint32_t beginner) {
  const Link& link = links_[index];
  for (const uint32_t member : link.members) {
    if (member == beginner) continue;
    Flow& flow = flows_[member];
    if (flow.links[0] != index)
      flow.others_bytes_per_s = std::min(flow.others_bytes_per_s, link.share);
    if (link.share < flow.bytes_per_s) settle(now_ns, flow, link.share);
  }
}

// `ended` was on the link.
void Flows::speed_up(int64_t now_ns, uint32_t index, uint32_t ended) {
  bool first_may_differ = links_[index].first_due == ended;
  for (const uint32_t member : links_[index].members) {
    Flow& flow = flows_[member];
    const double bytes_per_s = share(flow);
    if (bytes_per_s == flow.bytes_per_s) continue;
    settle(now_ns, flow, bytes_per_s);
    schedule(now_ns, flow);
    const uint32_t first_link = flow.links[0];
    if (first_link == index)
      first_may_differ = true;
    else if (links_[first_link].first_due == member)
      find_first_due(first_link);  // it may be due later: before, it was too early
    else
      offer(member);
  }
  if (first_may_differ) find_first_due(index);
}

void Flows::remove(int64_t now_ns, uint32_t id) {
  const Flow flow = flows_[id];
  size_t links_used = 0;
  for (; links_used < kMaxLinks && flow.links[links_used] != kNoLink; ++links_used) {
    Link& link = links_[flow.links[links_used]];
    *std::find(link.members.begin(), link.members.end(), id) = link.members.back();
    link.members.pop_back();
    link.divide();
  }
  for (size_t i = 0; i < links_used; ++i) speed_up(now_ns, flow.links[i], id);
  free_.push_back(id);
}

inline void Flows::offer(uint32_t flow) {
  const uint32_t link = flows_[flow].links[0];
  const uint32_t first = links_[link].first_due;
  if (first == kNoFlow || flows_[flow].due < flows_[first].due) set_first_due(link, flow);
}

void Flows::find_first_due(uint32_t index) {
  uint32_t first = kNoFlow;
  for (const uint32_t member : links_[index].members) {
    const Flow& flow = flows_[member];
    if (flow.links[0] == index && (first == kNoFlow || flow.due < flows_[first].due))
      first = member;
  }
  set_first_due(index, first);
}

void Flows::set_first_due(uint32_t link, uint32_t flow) {
  links_[link].first_due = flow;
  if (flow == kNoFlow)
    events_.forget_flow(link);
  else
    events_.set_flow(link, flows_[flow].due, flow);
}

void Flows::expect_links(uint32_t flow) const {
  for (const uint32_t link : flows_[flow].links)
    if (link != kNoLink) prefetch(links_[link]);
}

void Flows::cancel(int64_t now_ns, uint32_t flow) {
  remove(now_ns, flow);
}

std::optional<uint32_t> Flows::take_ended(const Event& event) {
  const uint32_t id = event.generation;
  Flow& flow = flows_[id];
  const double gone = static_cast<double>(event.at_ns - flow.settled_ns) * 1e-9 * flow.bytes_per_s;
  // Less than a nanosecond's worth is rounding.
  if (flow.left_bytes - gone > flow.bytes_per_s * 1e-9) {
    flow.left_bytes -= gone;
    flow.settled_ns = event.at_ns;
    schedule(event.at_ns, flow);
    find_first_due(flow.links[0]);
    return std::nullopt;
  }
  remove(event.at_ns, id);
  return flow.owner;
}

}  // namespace tierpilot::sim

#include "policies/sim/flows.h"

#include <algorithm>

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
  flow.left_bytes = bytes;
  flow.settled_ns = now_ns;
  flow.owner = owner;
  flow.links_used = 0;
  for (const uint32_t index : links) {
    Link& link = links_[index];
    flow.links[flow.links_used] = index;
    flow.places[flow.links_used] = static_cast<uint32_t>(link.members.size());
    link.members.push_back({id, flow.links_used++});
    link.divide();
  }
  flow.bytes_per_s = share(flow);
  schedule(now_ns, id);
  // Nobody has become faster: only these links can hold the others back more than before.
  for (uint32_t i = 0; i < flow.links_used; ++i) {
    const Link& link = links_[flow.links[i]];
    for (const Member& member : link.members)
      if (member.flow != id)
        retime(now_ns, member.flow, std::min(flows_[member.flow].bytes_per_s, link.share));
  }
  return id;
}

void Flows::Link::divide() {
  share = bytes_per_s / static_cast<double>(std::max<size_t>(members.size(), 1));
}

double Flows::share(const Flow& flow) const {
  double smallest = links_[flow.links[0]].share;
  for (uint32_t i = 1; i < flow.links_used; ++i)
    smallest = std::min(smallest, links_[flow.links[i]].share);
  return smallest;
}

void Flows::retime(int64_t now_ns, uint32_t id, double bytes_per_s) {
  Flow& flow = flows_[id];
  if (bytes_per_s == flow.bytes_per_s) return;
  flow.left_bytes -= static_cast<double>(now_ns - flow.settled_ns) * 1e-9 * flow.bytes_per_s;
  flow.settled_ns = now_ns;
  const bool slower = bytes_per_s < flow.bytes_per_s;
  flow.bytes_per_s = bytes_per_s;
  // A slower flow's event comes too early and then asks for another one: cheaper than two now.
  if (!slower) schedule(now_ns, id);
}

void Flows::schedule(int64_t now_ns, uint32_t id) {
  Flow& flow = flows_[id];
  events_.set_flow(after_s(now_ns, std::max(flow.left_bytes, 0.0) / flow.bytes_per_s), id);
}

void Flows::remove(int64_t now_ns, uint32_t id) {
  const Flow flow = flows_[id];
  for (uint32_t i = 0; i < flow.links_used; ++i) {
    Link& link = links_[flow.links[i]];
    const Member last = link.members.back();
    link.members[flow.places[i]] = last;
    flows_[last.flow].places[last.place] = flow.places[i];
    link.members.pop_back();
    link.divide();
  }
  for (uint32_t i = 0; i < flow.links_used; ++i)
    for (const Member& member : links_[flow.links[i]].members)
      retime(now_ns, member.flow, share(flows_[member.flow]));
  events_.forget_flow(id);
  free_.push_back(id);
}

void Flows::cancel(int64_t now_ns, uint32_t flow) {
  remove(now_ns, flow);
}

std::optional<uint32_t> Flows::take_ended(const Event& event) {
  Flow& flow = flows_[event.subject];
  const double gone = static_cast<double>(event.at_ns - flow.settled_ns) * 1e-9 * flow.bytes_per_s;
  // Less than a nanosecond's worth is rounding.
  if (flow.left_bytes - gone > flow.bytes_per_s * 1e-9) {
    flow.left_bytes -= gone;
    flow.settled_ns = event.at_ns;
    schedule(event.at_ns, event.subject);
    return std::nullopt;
  }
  remove(event.at_ns, event.subject);
  return flow.owner;
}

}  // namespace tierpilot::sim

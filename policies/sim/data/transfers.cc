#include "policies/sim/data/transfers.h"

namespace tierpilot::sim {
namespace {

double bytes_while_freed(const TierSpeeds& tiers, double bytes_per_s) {
  return tiers.free_bytes_per_s > 0 ? bytes_per_s / tiers.free_bytes_per_s : 0;
}

}  // namespace

Transfers::Transfers(const ClusterSpec& cluster, EventQueue& events, DataClient& client)
    : client_(client), flows_(events) {
  for (const NodeGroup& group : cluster.groups) {
    const TierSpeeds& tiers = group.tiers;
    Node node;
    node.kind = static_cast<uint32_t>(kinds_.size());
    kinds_.push_back({tiers.promote_start_s * tiers.promote_bytes_per_s,
                      tiers.evict_start_s * tiers.evict_bytes_per_s,
                      group.link_latency_s * group.link_bytes_per_s,
                      bytes_while_freed(tiers, tiers.evict_bytes_per_s),
                      bytes_while_freed(tiers, tiers.fast_copy_bytes_per_s)});
    for (uint32_t i = 0; i < group.count; ++i) {
      // Processes of one machine share its memory and disk.
      if (i == 0 || group.shared_cores == 0) {
        node.first_link = flows_.add_link(tiers.promote_bytes_per_s);
        flows_.add_link(tiers.evict_bytes_per_s);
        flows_.add_link(tiers.fast_copy_bytes_per_s);
        flows_.add_link(group.link_bytes_per_s);
        flows_.add_link(group.link_bytes_per_s);
      }
      nodes_.push_back(node);
    }
  }
}

inline uint32_t Transfers::begin(int64_t now_ns, uint32_t request, uint32_t node, double bytes,
                                 std::initializer_list<uint32_t> links) {
  ++nodes_[node].under_way;
  bytes *= client_.transfer(now_ns, node, true);
  return flows_.start(now_ns, bytes, links, request);
}

uint32_t Transfers::promote(int64_t now_ns, uint32_t request, uint32_t node, uint64_t bytes) {
  return begin(now_ns, request, node, static_cast<double>(bytes) + kind(node).promote_start_bytes,
               {link(node, kSlowRead)});
}

uint32_t Transfers::copy(int64_t now_ns, uint32_t request, uint32_t node, uint64_t bytes) {
  return begin(now_ns, request, node, static_cast<double>(bytes), {link(node, kMemory)});
}

uint32_t Transfers::fetch(int64_t now_ns, uint32_t request, uint32_t node, const Replica& source) {
  const double sent = static_cast<double>(source.bytes) + kind(node).link_start_bytes;
  const uint32_t uplink = link(source.node, kUplink), downlink = link(node, kDownlink);
  if (source.fast()) return begin(now_ns, request, node, sent, {uplink, downlink});
  return begin(now_ns, request, node, sent, {link(source.node, kSlowRead), uplink, downlink});
}

uint32_t Transfers::write_back(int64_t now_ns, uint32_t request, uint32_t node, uint64_t bytes) {
  const Kind& its = kind(node);
  return begin(now_ns, request, node,
               static_cast<double>(bytes) * (1 + its.freed_as_written) + its.evict_start_bytes,
               {link(node, kSlowWrite)});
}

uint32_t Transfers::free(int64_t now_ns, uint32_t request, uint32_t node, uint64_t bytes) {
  return begin(now_ns, request, node, static_cast<double>(bytes) * kind(node).freed_as_copied,
               {link(node, kMemory)});
}

uint32_t Transfers::commit(int64_t now_ns, uint32_t request, uint32_t node, uint64_t bytes,
                           uint32_t files) {
  double start_bytes = 0;
  for (uint32_t i = 0; i < files; ++i) start_bytes += kind(node).evict_start_bytes;
  return flows_.start(now_ns, static_cast<double>(bytes) + start_bytes, {link(node, kSlowWrite)},
                      request);
}

}  // namespace tierpilot::sim

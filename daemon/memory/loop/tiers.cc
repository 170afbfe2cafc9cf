#include "daemon/memory/loop/tiers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "daemon/topology/meminfo.h"

namespace tierpilot {
namespace {

constexpr double kAlike = 1.15;
constexpr double kNsPerDistance = 10;

using Latency = std::optional<double> (*)(const Topology&, const NumaNode&);

std::optional<double> hmat_ns(const Topology& /*topology*/, const NumaNode& node) {
  if (!node.hmat || !node.hmat->read_latency_ns) return {};
  return static_cast<double>(*node.hmat->read_latency_ns);
}

std::optional<double> distance_ns(const Topology& topology, const NumaNode& node) {
  int nearest = 255;
  for (const auto& from : topology.nodes)
    if (const auto to = from.distance_to.find(node.id);
        from.has_cpu() && to != from.distance_to.end())
      nearest = std::min(nearest, to->second);
  return nearest * kNsPerDistance;
}

using ByNode = std::map<int, double>;

std::optional<ByNode> all_nodes(const Topology& topology, Latency latency) {
  ByNode by_node;
  for (const auto& node : topology.nodes) {
    if (!node.has_memory()) continue;
    const auto ns = latency(topology, node);
    if (!ns) return {};
    by_node[node.id] = *ns;
  }
  return by_node;
}

// Seen from one socket, the memory of all others looks slow, and tasks run on them too.
ByNode seen_from_near(const Topology& topology, ByNode measured_ns) {
  std::optional<double> nearest_ns;
  for (const auto& node : topology.nodes)
    if (node.has_cpu() && node.has_memory())
      nearest_ns = std::min(nearest_ns.value_or(measured_ns[node.id]), measured_ns[node.id]);
  for (const auto& node : topology.nodes)
    if (node.has_cpu() && node.has_memory()) measured_ns[node.id] = *nearest_ns;
  return measured_ns;
}

bool has_all(const Topology& topology, const ByNode& by_node) {
  return std::all_of(topology.nodes.begin(), topology.nodes.end(), [&](const auto& node) {
    return !node.has_memory() || by_node.count(node.id);
  });
}

}  // namespace

TierSet make_paging_tiers(const Topology& topology, const ByNode& measured_ns) {
  TierSet set;
  ByNode latency_ns;
  if (!measured_ns.empty() && has_all(topology, measured_ns)) {
    set.latency_source = "measured";
    latency_ns = seen_from_near(topology, measured_ns);
  } else if (const auto hmat = all_nodes(topology, hmat_ns)) {
    set.latency_source = "HMAT";
    latency_ns = *hmat;
  } else {
    set.latency_source = "SLIT distances";
    latency_ns = all_nodes(topology, distance_ns).value_or(ByNode{});
  }
  std::vector<const NumaNode*> nodes;
  for (const auto& node : topology.nodes)
    if (node.has_memory()) nodes.push_back(&node);
  std::stable_sort(nodes.begin(), nodes.end(), [&](const auto* a, const auto* b) {
    return latency_ns[a->id] < latency_ns[b->id];
  });
  for (const auto* node : nodes) {
    const double ns = latency_ns[node->id];
    const bool alike = !set.tiers.empty() && ns <= set.tiers.back().latency_ns * kAlike;
    if (!alike && set.tiers.size() == kMaxTiers) break;
    if (!alike) set.tiers.push_back({.name = {}, .nodes = {}, .latency_ns = ns});
    auto& tier = set.tiers.back();
    tier.nodes.push_back(node->id);
    tier.capacity_bytes += node->memory_total_bytes.value_or(0);
    tier.free_bytes += node->memory_free_bytes.value_or(0);
    tier.name = fmt::format("node{}", format_id_list(tier.nodes));
  }
  return set;
}

void refresh_free_bytes(const Sysroot& sysroot, std::vector<PagingTier>& tiers) {
  for (auto& tier : tiers) {
    tier.free_bytes = 0;
    for (const int node : tier.nodes) {
      const auto text =
          sysroot.read(fmt::format("/sys/devices/system/node/node{}/meminfo", node)).value_or("");
      for (const char* key : {"MemFree", "Inactive(file)"})
        tier.free_bytes += meminfo_bytes(text, key).value_or(0);
    }
  }
}

}  // namespace tierpilot

#include "daemon/probe/active/disagreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace tierpilot {
namespace {

constexpr double kTolerance = 1.25;

const std::string kLatency = "latency_ns";

// A node whose measured latency may be held against what others say of it.
struct Judged {
  const TierMeasurement* tier;
  const KernelMemoryTier* kernel_tier;  // null: the kernel does not rank it
  const HmatFigures* hmat;              // null: none, or not about the measuring CPUs

  double latency_ns() const { return *tier->latency_p50_ns.value; }
  std::string text() const {
    return fmt::format("{} (node {}, {:.0f} ns)", tier->tier.name, tier->tier.numa_node,
                       latency_ns());
  }
};

const KernelMemoryTier* kernel_tier_of(const Topology& topology, int node) {
  for (const auto& tier : topology.kernel_tiers)
    if (std::count(tier.nodes.begin(), tier.nodes.end(), node)) return &tier;
  return nullptr;
}

const HmatFigures* hmat_of(const Topology& topology, const TierMeasurement& tier) {
  const auto* node = topology.node(tier.tier.numa_node);
  if (!node || !node->hmat) return nullptr;
  const auto& initiators = node->hmat->initiator_nodes;
  return std::count(initiators.begin(), initiators.end(), tier.initiator_node) ? &*node->hmat
                                                                               : nullptr;
}

void compare_kernel_tiers(const Judged& a, const Judged& b, std::vector<std::string>& found) {
  if (!a.kernel_tier || !b.kernel_tier) return;
  const auto& [near, far] =
      a.tier->tier_class <= b.tier->tier_class ? std::tie(a, b) : std::tie(b, a);
  const bool alike = near.tier->tier_class == far.tier->tier_class;
  if (near.kernel_tier == far.kernel_tier) {
    if (!alike)
      found.push_back(fmt::format(
          "the kernel holds {} and {} for equals (its memory tier {}), but they measure as "
          "different classes",
          near.text(), far.text(), near.kernel_tier->id));
  } else if (alike) {
    found.push_back(fmt::format(
        "the kernel ranks {} and {} apart (its memory tiers {} and {}), but they measure as one "
        "class",
        near.text(), far.text(), near.kernel_tier->id, far.kernel_tier->id));
  } else if (near.kernel_tier->id > far.kernel_tier->id) {
    found.push_back(fmt::format(
        "the kernel ranks {} above {} (its memory tiers {} and {}), but it measures slower",
        far.text(), near.text(), far.kernel_tier->id, near.kernel_tier->id));
  }
}

void compare_hmat_order(const Judged& a, const Judged& b, std::vector<std::string>& found) {
  if (!a.hmat || !b.hmat || !a.hmat->read_latency_ns || !b.hmat->read_latency_ns) return;
  if (a.tier->tier_class == b.tier->tier_class) return;
  const auto& [near, far] = a.latency_ns() < b.latency_ns() ? std::tie(a, b) : std::tie(b, a);
  if (*near.hmat->read_latency_ns > *far.hmat->read_latency_ns)
    found.push_back(fmt::format(
        "HMAT promises {} to answer before {} ({} against {} ns), but it measures slower",
        far.text(), near.text(), *far.hmat->read_latency_ns, *near.hmat->read_latency_ns));
}

void compare_hmat_figures(const Judged& node, std::vector<std::string>& found) {
  if (!node.hmat) return;
  if (const auto& promised = node.hmat->read_latency_ns) {
    const double ratio = node.latency_ns() / static_cast<double>(*promised);
    if (ratio > kTolerance || ratio < 1 / kTolerance)
      found.push_back(fmt::format("HMAT promises {} ns for {}, which measures {:.2f} times that",
                                  *promised, node.text(), ratio));
  }
  const auto& promised = node.hmat->read_bandwidth_mb_per_s;
  const auto& measured = node.tier->read_gb_per_s.value;
  if (promised && measured && *measured * 1000 > static_cast<double>(*promised) * kTolerance)
    found.push_back(fmt::format("HMAT promises {} {:.1f} GB/s of reads, but {:.1f} were measured",
                                node.text(), static_cast<double>(*promised) / 1000, *measured));
}

}  // namespace

std::vector<std::string> disagreements(const Topology& topology,
                                       const std::vector<TierMeasurement>& tiers) {
  std::vector<std::string> found;
  std::vector<Judged> judged;
  const auto nodes = std::count_if(tiers.begin(), tiers.end(),
                                   [](const auto& tier) { return !tier.tier.is_directory(); });
  for (const auto& tier : tiers) {
    if (tier.tier.is_directory() || !tier.latency_p50_ns.value) continue;
    const Judged node{&tier, kernel_tier_of(topology, tier.tier.numa_node),
                      hmat_of(topology, tier)};
    if (const auto quality = tier.quality(kLatency); quality.grade != Grade::kNoisy)
      judged.push_back(node);
    else if (node.hmat || nodes > 1)
      found.push_back(fmt::format("{} is not compared with the kernel's tiers and HMAT: {}",
                                  node.text(), quality.reason));
  }
  for (size_t i = 0; i < judged.size(); ++i) {
    compare_hmat_figures(judged[i], found);
    for (size_t j = i + 1; j < judged.size(); ++j) {
      compare_kernel_tiers(judged[i], judged[j], found);
      compare_hmat_order(judged[i], judged[j], found);
    }
  }
  return found;
}

}  // namespace tierpilot

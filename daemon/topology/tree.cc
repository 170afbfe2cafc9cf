#include <fmt/format.h>

#include "base/bytes.h"
#include "daemon/topology/topology.h"

namespace tierpilot {
namespace {

struct Branch {
  std::string text;
  std::vector<Branch> below{};
};

void draw(const Branch& branch, const std::string& indent, std::string& out) {
  out += branch.text + '\n';
  for (size_t i = 0; i < branch.below.size(); ++i) {
    const bool last = i + 1 == branch.below.size();
    out += indent + (last ? "└── " : "├── ");
    draw(branch.below[i], indent + (last ? "    " : "│   "), out);
  }
}

std::string size_text(std::optional<uint64_t> bytes) {
  return bytes ? format_bytes(*bytes) : "size unknown";
}

std::string figure_text(std::optional<int64_t> value, std::string_view unit) {
  return value ? fmt::format("{} {}", *value, unit) : "not given";
}

Branch hmat_branch(const HmatFigures& hmat) {
  return {fmt::format(
      "firmware promises: read {}, {}; write {}, {} (from node {})",
      figure_text(hmat.read_latency_ns, "ns"), figure_text(hmat.read_bandwidth_mb_per_s, "MB/s"),
      figure_text(hmat.write_latency_ns, "ns"), figure_text(hmat.write_bandwidth_mb_per_s, "MB/s"),
      format_id_list(hmat.initiator_nodes))};
}

Branch node_branch(const NumaNode& node) {
  const auto cpus = node.has_cpu() ? "CPUs " + format_id_list(node.cpus) : "no CPUs";
  const auto memory = node.memory_total_bytes == 0U
                          ? "no memory"
                          : fmt::format("{} ({} free)", size_text(node.memory_total_bytes),
                                        size_text(node.memory_free_bytes));
  Branch branch{fmt::format("node {}: {}, {}", node.id, cpus, memory)};
  if (node.distance_to.size() > 1) {
    std::vector<std::string> distances;
    for (const auto& [other, distance] : node.distance_to)
      distances.push_back(fmt::format("{} to node {}", distance, other));
    branch.below.push_back({fmt::format("distance {}", fmt::join(distances, ", "))});
  }
  if (node.hmat) branch.below.push_back(hmat_branch(*node.hmat));
  return branch;
}

Branch kernel_tiers_branch(const Topology& topology) {
  if (topology.kernel_tiers.empty())
    return {"kernel memory tiers: unavailable: " + topology.kernel_tiers_unavailable};
  Branch branch{"kernel memory tiers, fast to slow"};
  for (const auto& tier : topology.kernel_tiers)
    branch.below.push_back({fmt::format("tier {}: nodes {}", tier.id, format_id_list(tier.nodes))});
  return branch;
}

Branch cxl_branch(const Topology& topology) {
  if (topology.cxl_memdevs.empty() && topology.cxl_regions.empty()) return {"CXL: no devices"};
  Branch branch{"CXL"};
  for (const auto& device : topology.cxl_memdevs)
    branch.below.push_back(
        {fmt::format("{}: {} volatile, {} persistent", device.name, size_text(device.ram_bytes),
                     size_text(device.pmem_bytes))});
  for (const auto& region : topology.cxl_regions)
    branch.below.push_back({fmt::format(
        "{}: {} {} over {}, {}", region.name, size_text(region.size_bytes), region.mode,
        region.targets.empty() ? "no targets" : fmt::format("{}", fmt::join(region.targets, ", ")),
        region.nodes.empty() ? "no NUMA node" : "node " + format_id_list(region.nodes))});
  for (const auto& decoder : topology.cxl_decoders)
    branch.below.push_back({fmt::format("{}: {}{}{}", decoder.name, size_text(decoder.size_bytes),
                                        decoder.mode.empty() ? "" : ", ", decoder.mode)});
  return branch;
}

Branch dax_branch(const DaxDevice& device) {
  return {fmt::format(
      "{}: {}, driver {}, {}", device.name, size_text(device.size_bytes),
      device.driver.empty() ? "none" : device.driver,
      device.target_node ? fmt::format("node {}", *device.target_node) : "no NUMA node")};
}

Branch gpus_branch(const Topology& topology) {
  if (!topology.gpus_unavailable.empty())
    return {"GPUs: unavailable: " + topology.gpus_unavailable};
  if (topology.gpus.empty()) return {"GPUs: none"};
  Branch branch{"GPUs"};
  for (const auto& gpu : topology.gpus)
    branch.below.push_back({fmt::format("gpu {}: {}, {} ({} free), {}", gpu.index, gpu.name,
                                        size_text(gpu.memory_total_bytes),
                                        size_text(gpu.memory_free_bytes), gpu.pci_address)});
  return branch;
}

}  // namespace

std::string format_tree(const Topology& topology) {
  Branch machine{fmt::format("machine: {} CPUs online ({}), {} NUMA node{}",
                             topology.cpus_online.size(), format_id_list(topology.cpus_online),
                             topology.nodes.size(), topology.nodes.size() == 1 ? "" : "s")};
  for (const auto& node : topology.nodes) machine.below.push_back(node_branch(node));
  machine.below.push_back(kernel_tiers_branch(topology));
  machine.below.push_back(cxl_branch(topology));
  if (!topology.dax_devices.empty()) {
    Branch dax{"DAX"};
    for (const auto& device : topology.dax_devices) dax.below.push_back(dax_branch(device));
    machine.below.push_back(std::move(dax));
  }
  machine.below.push_back(gpus_branch(topology));
  std::string text;
  draw(machine, "", text);
  return text;
}

}  // namespace tierpilot

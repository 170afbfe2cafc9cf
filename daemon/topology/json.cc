#include "daemon/topology/json.h"

#include <nlohmann/json.hpp>

namespace tierpilot {
namespace {

using nlohmann::ordered_json;

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

template <class T, class F>
ordered_json array_of(const std::vector<T>& items, F&& to_json) {
  auto array = ordered_json::array();
  for (const auto& item : items) array.push_back(to_json(item));
  return array;
}

ordered_json hmat_to_json(const HmatFigures& hmat) {
  return {{"initiator_nodes", hmat.initiator_nodes},
          {"read_latency_ns", or_null(hmat.read_latency_ns)},
          {"write_latency_ns", or_null(hmat.write_latency_ns)},
          {"read_bandwidth_mb_per_s", or_null(hmat.read_bandwidth_mb_per_s)},
          {"write_bandwidth_mb_per_s", or_null(hmat.write_bandwidth_mb_per_s)}};
}

ordered_json node_to_json(const NumaNode& node) {
  auto distances = ordered_json::object();
  for (const auto& [other, distance] : node.distance_to)
    distances[std::to_string(other)] = distance;
  return {{"id", node.id},
          {"cpus", node.cpus},
          {"memory_total_bytes", or_null(node.memory_total_bytes)},
          {"memory_free_bytes", or_null(node.memory_free_bytes)},
          {"distance_to", distances},
          {"hmat", node.hmat ? hmat_to_json(*node.hmat) : ordered_json(nullptr)}};
}

ordered_json region_to_json(const CxlRegion& region) {
  return {{"name", region.name},
          {"mode", region.mode},
          {"size_bytes", or_null(region.size_bytes)},
          {"base_address", or_null(region.base_address)},
          {"interleave_ways", or_null(region.interleave_ways)},
          {"targets", region.targets},
          {"nodes", region.nodes}};
}

ordered_json cxl_to_json(const Topology& topology) {
  const auto memdev = [](const CxlMemdev& device) -> ordered_json {
    return {{"name", device.name},
            {"ram_bytes", or_null(device.ram_bytes)},
            {"pmem_bytes", or_null(device.pmem_bytes)},
            {"numa_node", or_null(device.numa_node)}};
  };
  const auto decoder = [](const CxlDecoder& it) -> ordered_json {
    return {{"name", it.name}, {"mode", it.mode}, {"size_bytes", or_null(it.size_bytes)}};
  };
  return {{"memdevs", array_of(topology.cxl_memdevs, memdev)},
          {"regions", array_of(topology.cxl_regions, region_to_json)},
          {"decoders", array_of(topology.cxl_decoders, decoder)}};
}

ordered_json dax_to_json(const DaxDevice& device) {
  const char* source = device.source == DaxSource::kCxl    ? "cxl"
                       : device.source == DaxSource::kPmem ? "pmem"
                                                           : "other";
  return {{"name", device.name},
          {"driver", device.driver},
          {"source", source},
          {"size_bytes", or_null(device.size_bytes)},
          {"target_node", or_null(device.target_node)}};
}

ordered_json gpu_to_json(const Gpu& gpu) {
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"uuid", gpu.uuid},
          {"pci_address", gpu.pci_address},
          {"memory_total_bytes", or_null(gpu.memory_total_bytes)},
          {"memory_free_bytes", or_null(gpu.memory_free_bytes)},
          {"utilisation_percent", or_null(gpu.utilisation_percent)},
          {"numa_node", or_null(gpu.numa_node)},
          {"compute_capability", or_null(gpu.compute_capability)},
          {"cores", or_null(gpu.cores)},
          {"sm_clock_mhz", or_null(gpu.sm_clock_mhz)},
          {"memory_clock_mhz", or_null(gpu.memory_clock_mhz)},
          {"bus_width_bits", or_null(gpu.bus_width_bits)}};
}

}  // namespace

ordered_json topology_to_json(const Topology& topology) {
  const auto tier = [](const KernelMemoryTier& it) -> ordered_json {
    return {{"id", it.id}, {"nodes", it.nodes}};
  };
  ordered_json json{{"cpus_online", topology.cpus_online},
                    {"nodes", array_of(topology.nodes, node_to_json)},
                    {"kernel_tiers", array_of(topology.kernel_tiers, tier)},
                    {"cxl", cxl_to_json(topology)},
                    {"dax_devices", array_of(topology.dax_devices, dax_to_json)},
                    {"gpus", array_of(topology.gpus, gpu_to_json)}};
  if (!topology.kernel_tiers_unavailable.empty())
    json["kernel_tiers_unavailable"] = topology.kernel_tiers_unavailable;
  if (!topology.gpus_unavailable.empty()) {
    json["gpus"] = nullptr;
    json["gpus_unavailable"] = topology.gpus_unavailable;
  }
  return json;
}

}  // namespace tierpilot

#include <fmt/format.h>

#include <charconv>

#include "daemon/topology/discover.h"

namespace tierpilot {
namespace {

constexpr const char* kCxl = "/sys/bus/cxl/devices";
constexpr const char* kDax = "/sys/bus/dax/devices";

std::filesystem::path real_path(const Sysroot& sysroot, const std::string& path) {
  std::error_code err;
  return std::filesystem::canonical(sysroot.resolve(path), err);
}

bool lies_below(const std::filesystem::path& path, const std::filesystem::path& ancestor) {
  return !ancestor.empty() && path.string().starts_with(ancestor.string() + '/');
}

// Nodes that own a memory block inside the region: true for regions that firmware made system RAM
// as well as for those bound to kmem.
std::vector<int> nodes_in(FactReader& facts, const CxlRegion& region,
                          const std::vector<NumaNode>& nodes) {
  const auto text = facts.text("/sys/devices/system/memory/block_size_bytes");
  uint64_t block = 0;  // hexadecimal without 0x
  if (text) std::from_chars(text->data(), text->data() + text->size(), block, 16);
  if (!block || !region.base_address || !region.size_bytes || !*region.size_bytes) return {};
  const uint64_t first = *region.base_address / block;
  // 64 Ki blocks of the smallest size are 8 TiB; a hostile size must not keep us busy for ever.
  const uint64_t count = std::min<uint64_t>((*region.size_bytes + block - 1) / block, 65536);
  std::vector<int> found;
  for (const auto& node : nodes)
    for (uint64_t i = first; i < first + count; ++i)
      if (facts.sysroot().exists(
              fmt::format("/sys/devices/system/node/node{}/memory{}", node.id, i))) {
        found.push_back(node.id);
        break;
      }
  return found;
}

CxlMemdev read_memdev(FactReader& facts, const std::string& name) {
  const auto path = fmt::format("{}/{}", kCxl, name);
  return {.name = name,
          .ram_bytes = facts.number(path + "/ram/size"),
          .pmem_bytes = facts.number(path + "/pmem/size"),
          .numa_node = facts.node_id(path + "/numa_node")};
}

CxlRegion read_region(FactReader& facts, const std::string& name,
                      const std::vector<NumaNode>& nodes) {
  const auto path = fmt::format("{}/{}", kCxl, name);
  CxlRegion region{.name = name,
                   .mode = facts.text(path + "/mode").value_or(""),
                   .size_bytes = facts.number(path + "/size"),
                   .base_address = facts.number(path + "/resource")};
  if (const auto ways = facts.number(path + "/interleave_ways"); ways && *ways <= 16)
    region.interleave_ways = static_cast<int>(*ways);
  for (int i = 0; i < region.interleave_ways.value_or(0); ++i)
    if (const auto target = facts.text(fmt::format("{}/target{}", path, i)); target)
      if (!target->empty()) region.targets.push_back(*target);
  region.nodes = nodes_in(facts, region, nodes);
  return region;
}

CxlDecoder read_decoder(FactReader& facts, const std::string& name) {
  const auto path = fmt::format("{}/{}", kCxl, name);
  return {.name = name,
          .mode = facts.text(path + "/mode").value_or(""),
          .size_bytes = facts.number(path + "/size")};
}

DaxSource source_of(const Sysroot& sysroot, const std::string& device) {
  const auto real = real_path(sysroot, fmt::format("{}/{}", kDax, device));
  for (const auto& name : sysroot.list(kCxl))
    if (name.starts_with("region") &&
        lies_below(real, real_path(sysroot, fmt::format("{}/{}", kCxl, name))))
      return DaxSource::kCxl;
  return real.string().find("/ndbus") != std::string::npos ? DaxSource::kPmem : DaxSource::kOther;
}

}  // namespace

void discover_cxl(FactReader& facts, Topology& topology) {
  for (const auto& name : facts.list(kCxl)) {
    if (name.starts_with("mem")) topology.cxl_memdevs.push_back(read_memdev(facts, name));
    if (name.starts_with("region"))
      topology.cxl_regions.push_back(read_region(facts, name, topology.nodes));
    if (name.starts_with("decoder")) topology.cxl_decoders.push_back(read_decoder(facts, name));
  }
}

std::vector<DaxDevice> discover_dax(FactReader& facts) {
  std::vector<DaxDevice> devices;
  for (const auto& name : facts.list(kDax)) {
    const auto path = fmt::format("{}/{}", kDax, name);
    DaxDevice device{.name = name,
                     .source = source_of(facts.sysroot(), name),
                     .size_bytes = facts.number(path + "/size"),
                     .target_node = facts.node_id(path + "/target_node")};
    std::error_code none_bound;
    device.driver =
        std::filesystem::read_symlink(facts.sysroot().resolve(path + "/driver"), none_bound)
            .filename()
            .string();
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace tierpilot

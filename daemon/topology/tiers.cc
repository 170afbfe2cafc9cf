#include "daemon/topology/tiers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tierpilot {
namespace {

std::string kind_of(const Topology& topology, const NumaNode& node) {
  if (node.has_cpu()) return "dram";
  for (const auto& region : topology.cxl_regions)
    if (std::count(region.nodes.begin(), region.nodes.end(), node.id)) return "cxl";
  for (const auto& device : topology.dax_devices)
    if (device.driver == "kmem" && device.target_node == node.id) {
      if (device.source == DaxSource::kCxl) return "cxl";
      if (device.source == DaxSource::kPmem) return "pmem";
    }
  return "memory";
}

using FileId = std::pair<dev_t, ino_t>;

// `known`: those before it, which it is none of.
Result<TierSpec> directory_tier(const std::string& directory,
                                std::map<FileId, std::string>& known) {
  const auto name = fmt::format("tier directory '{}'", directory);
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0) return fail_errno(errno, name);
  if (!S_ISDIR(info.st_mode)) return fail(ErrorCode::kInvalid, name + ": is not a directory");
  if (access(directory.c_str(), W_OK | X_OK) != 0) return fail_errno(errno, name);
  const auto [same, is_new] = known.emplace(FileId(info.st_dev, info.st_ino), directory);
  if (!is_new)
    return fail(ErrorCode::kInvalid, fmt::format("{}: is '{}', which is one already: leave one out",
                                                 name, same->second));
  struct statvfs space {};
  if (statvfs(directory.c_str(), &space) != 0) return fail_errno(errno, name);
  return TierSpec{.name = fmt::format("directory{}", known.size() - 1),
                  .kind = "directory",
                  .directory = directory,
                  .capacity_bytes = uint64_t{space.f_bavail} * space.f_frsize};
}

}  // namespace

Result<std::vector<TierSpec>> candidate_tiers(const Topology& topology,
                                              const std::vector<std::string>& directories) {
  // Of tiers that measure alike the first is taken as the faster: a node with CPUs goes first.
  auto nodes = topology.nodes;
  std::stable_partition(nodes.begin(), nodes.end(),
                        [](const auto& node) { return node.has_cpu(); });
  std::vector<TierSpec> tiers;
  for (const auto& node : nodes) {
    if (!node.has_memory()) continue;
    const auto kind = kind_of(topology, node);
    tiers.push_back({.name = fmt::format("{}{}", kind, node.id),
                     .kind = kind,
                     .numa_node = node.id,
                     .capacity_bytes = *node.memory_total_bytes});
  }
  std::map<FileId, std::string> known;
  for (const auto& directory : directories) {
    auto tier = directory_tier(directory, known);
    if (!tier) return tl::unexpected(tier.error());
    tiers.push_back(std::move(*tier));
  }
  return tiers;
}

}  // namespace tierpilot

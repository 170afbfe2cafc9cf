#include "swap/tiers/tier_list.h"

#include <fmt/format.h>
#include <numa.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <string>

#include "base/process/available_memory.h"
#include "base/swap_tier_words.h"

namespace tierpilot::swap {
namespace {

using Tiers = std::vector<std::unique_ptr<Tier>>;
constexpr int64_t kMostBytes = int64_t{1} << 46;
constexpr int64_t kLeastBytes = 64 << 20;
constexpr int64_t kLeastDirectoryBytes = 1 << 20;

// What tells that two words are of one place.
std::string place_of(const SwapTierWords& tier) {
  struct stat status {};
  if (tier.kind != SwapTierWords::Kind::kDirectory || stat(tier.directory.c_str(), &status) != 0)
    return tier.name();
  return fmt::format("{}:{}", status.st_dev, status.st_ino);
}

Result<std::unique_ptr<Tier>> tier_of(std::string_view entry, MemoryPages pages, int parts,
                                      std::map<std::string, std::string>& names) {
  const auto tier = parse_swap_tier(entry);
  if (!tier) return tl::unexpected(tier.error());
  const auto [other, first] = names.emplace(place_of(*tier), tier->name());
  if (!first)
    return fail(ErrorCode::kInvalid,
                fmt::format("tier '{}': it is the same as '{}': name it once, with all that may be "
                            "used of it",
                            tier->name(), other->second));
  const auto bytes = static_cast<int64_t>(tier->bytes) / parts;
  if (tier->kind == SwapTierWords::Kind::kDirectory)
    return open_directory_tier(tier->directory, bytes);
  return open_memory_tier(tier->name(), tier->node, bytes, pages);
}

std::string swap_directory() {
  const char* said = std::getenv("TIERPILOT_SWAP_DIR");
  return said && *said ? said : "/var/tmp";
}

// Of the host's memory: what can be had without swapping, also for who lives in a cgroup, where the
// memory of all nodes counts.
class FoundRoom {
 public:
  FoundRoom(int64_t available_bytes, int parts) : left_(available_bytes), parts_(parts) {}
  // Half of it; less than is worth it: none.
  int64_t take(int64_t free_bytes) {
    const auto bytes = std::min(free_bytes, left_) / 2 / parts_;
    if (bytes < kLeastBytes) return 0;
    left_ -= bytes * parts_;
    return bytes;
  }

 private:
  int64_t left_;
  int parts_;
};

// Of all nodes, as new memory is taken near whoever runs.
void add_host(Tiers& tiers, FoundRoom& room) {
  const auto bytes = room.take(kMostBytes);
  if (bytes == 0) return;
  auto tier = open_memory_tier("memory", -1, bytes, MemoryPages::kToPin);
  if (tier) tiers.push_back(std::move(*tier));
}

void add_nodes(Tiers& tiers, MemoryPages pages, FoundRoom& room) {
  if (numa_available() < 0) return;
  const int here = numa_node_of_cpu(sched_getcpu());
  for (int node = 0; node <= numa_max_node(); ++node) {
    if (!numa_bitmask_isbitset(numa_all_nodes_ptr, static_cast<unsigned>(node))) continue;
    if (node == here) continue;
    long long free_bytes = 0;
    if (numa_node_size64(node, &free_bytes) <= 0) continue;
    const auto bytes = room.take(free_bytes);
    if (bytes == 0) continue;
    auto tier = open_memory_tier(fmt::format("node{}", node), node, bytes, pages);
    if (tier) tiers.push_back(std::move(*tier));
  }
}

}  // namespace

MemoryPages pages_for(const ComputeDevice& device) {
  return device.runs_ahead() ? MemoryPages::kToPin : MemoryPages::kShared;
}

Result<Tiers> tiers_of(std::string_view list, MemoryPages pages, int parts) {
  Tiers tiers;
  std::map<std::string, std::string> names;  // by place
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    auto tier = tier_of(list.substr(0, comma), pages, parts, names);
    if (!tier) return tl::unexpected(tier.error());
    tiers.push_back(std::move(*tier));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  if (tiers.empty()) return fail(ErrorCode::kInvalid, "tier '': at least one is needed");
  return tiers;
}

Result<Tiers> found_tiers(const ComputeDevice& device, int parts, int64_t host_bytes) {
  Tiers tiers;
  FoundRoom of_host(available_memory_bytes().value_or(0) - host_bytes * parts, parts);
  if (device.runs_ahead()) add_host(tiers, of_host);
  add_nodes(tiers, pages_for(device), of_host);
  const auto directory = swap_directory();
  struct statvfs room {};
  Status failed;
  if (statvfs(directory.c_str(), &room) != 0) {
    failed = fail_errno(errno, fmt::format("tier 'dir:{}'", directory));
  } else {
    const auto bytes =
        static_cast<int64_t>(room.f_bavail) * static_cast<int64_t>(room.f_frsize) / 2 / parts;
    Result<std::unique_ptr<Tier>> tier =
        bytes < kLeastDirectoryBytes
            ? fail(ErrorCode::kExhausted,
                   fmt::format("tier 'dir:{}': half of what is free there is {} bytes", directory,
                               bytes))
            : open_directory_tier(directory, std::min(bytes, kMostBytes));
    if (tier)
      tiers.push_back(std::move(*tier));
    else
      failed = tl::unexpected(tier.error());
  }
  if (!tiers.empty()) return tiers;
  failed.error().message += "; another folder is named by TIERPILOT_SWAP_DIR";
  return tl::unexpected(failed.error());
}

std::string warning_about(const std::vector<MeasuredTier>& tiers) {
  std::string names;
  for (const auto& [tier, read, write, latency] : tiers)
    if (tier->is_memory_in_disguise())
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", tier->name());
  if (names.empty()) return {};
  return fmt::format(
      "tier {} is on a tmpfs, which is memory: what leaves for it frees none; name a folder on a "
      "disk, or a NUMA node as node1=SIZE",
      names);
}

}  // namespace tierpilot::swap

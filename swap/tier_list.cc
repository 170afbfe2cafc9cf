#include "swap/tier_list.h"

#include <fmt/format.h>
#include <numa.h>
#include <sched.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "base/bytes.h"

namespace tierpilot::swap {
namespace {

using Tiers = std::vector<std::unique_ptr<Tier>>;
constexpr int64_t kMostBytes = int64_t{1} << 46;

tl::unexpected<Error> wrong(std::string_view entry, std::string_view why) {
  return fail(ErrorCode::kInvalid, fmt::format("tier '{}': {}", entry, why));
}

Result<std::unique_ptr<Tier>> tier_of(std::string_view entry) {
  const auto equals = entry.rfind('=');
  if (equals == std::string_view::npos)
    return wrong(entry, "say how much of it may be used: NAME=SIZE, as in dir:/srv/slow=16GiB");
  const auto size = parse_bytes(entry.substr(equals + 1));
  if (!size) return wrong(entry, size.error().message);
  if (*size < (1 << 20) || *size > kMostBytes)
    return wrong(entry, "a size from 1MiB to 64TiB is needed");
  const auto where = entry.substr(0, equals);
  const auto bytes = static_cast<int64_t>(*size);
  if (where == "memory") return open_memory_tier("memory", -1, bytes);
  if (where.starts_with("dir:") && where.size() > 4)
    return open_directory_tier(std::string(where.substr(4)), bytes);
  if (where.starts_with("node")) {
    int node = -1;
    const auto* end = where.data() + where.size();
    const auto [stop, error] = std::from_chars(where.data() + 4, end, node);
    if (error == std::errc() && stop == end && node >= 0)
      return open_memory_tier(std::string(where), node, bytes);
  }
  return wrong(entry, "there are node0, node1, ..., memory and dir:PATH");
}

std::string swap_directory() {
  const char* said = std::getenv("TIERPILOT_SWAP_DIR");
  return said && *said ? said : "/var/tmp";
}

void add_nodes(Tiers& tiers) {
  if (numa_available() < 0) return;
  const int here = numa_node_of_cpu(sched_getcpu());
  for (int node = 0; node <= numa_max_node(); ++node) {
    if (!numa_bitmask_isbitset(numa_all_nodes_ptr, static_cast<unsigned>(node))) continue;
    if (node == here) continue;
    long long free_bytes = 0;
    if (numa_node_size64(node, &free_bytes) <= 0 || free_bytes < (64 << 20)) continue;
    auto tier = open_memory_tier(fmt::format("node{}", node), node, free_bytes / 2);
    if (tier) tiers.push_back(std::move(*tier));
  }
}

}  // namespace

Result<Tiers> tiers_of(std::string_view list) {
  Tiers tiers;
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    auto tier = tier_of(list.substr(0, comma));
    if (!tier) return tl::unexpected(tier.error());
    tiers.push_back(std::move(*tier));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  if (tiers.empty()) return wrong("", "at least one is needed");
  return tiers;
}

Result<Tiers> found_tiers() {
  Tiers tiers;
  add_nodes(tiers);
  const auto directory = swap_directory();
  struct statvfs room {};
  Status failed;
  if (statvfs(directory.c_str(), &room) != 0) {
    failed = fail_errno(errno, fmt::format("tier 'dir:{}'", directory));
  } else {
    const auto bytes =
        static_cast<int64_t>(room.f_bavail) * static_cast<int64_t>(room.f_frsize) / 2;
    auto tier = open_directory_tier(directory, std::min(bytes, kMostBytes));
    if (tier)
      tiers.push_back(std::move(*tier));
    else
      failed = tl::unexpected(tier.error());
  }
  if (tiers.empty()) return tl::unexpected(failed.error());
  return tiers;
}

}  // namespace tierpilot::swap

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "daemon/topology/discover.h"

namespace tierpilot {

std::vector<KernelMemoryTier> discover_kernel_tiers(FactReader& facts) {
  constexpr std::string_view kRoot = "/sys/devices/virtual/memory_tiering";
  constexpr std::string_view kPrefix = "memory_tier";
  std::vector<KernelMemoryTier> tiers;
  for (const auto& name : facts.list(std::string(kRoot))) {
    KernelMemoryTier tier;
    if (!name.starts_with(kPrefix)) continue;
    const char* last = name.data() + name.size();
    const auto [end, err] = std::from_chars(name.data() + kPrefix.size(), last, tier.id);
    if (err != std::errc{} || end != last) continue;
    tier.nodes = facts.ids(fmt::format("{}/{}/nodelist", kRoot, name));
    tiers.push_back(std::move(tier));
  }
  std::sort(tiers.begin(), tiers.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return tiers;
}

}  // namespace tierpilot

#include "daemon/agent/calibration/swap_order.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace tierpilot::agent {
namespace {

bool on_one_file_system(const std::string& a, const std::string& b) {
  struct stat of_a {
  }, of_b{};
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev;
}

bool is_of(const SwapTierWords& tier, const TierMeasurement& measured) {
  switch (tier.kind) {
    case SwapTierWords::Kind::kDirectory:
      return measured.tier.is_directory() &&
             on_one_file_system(tier.directory, measured.tier.directory);
    case SwapTierWords::Kind::kNode:
      return !measured.tier.is_directory() && measured.tier.numa_node == tier.node;
    case SwapTierWords::Kind::kMemory:  // the kernel chooses: where the daemon's CPUs are
      return !measured.tier.is_directory() && measured.tier.numa_node == measured.initiator_node;
  }
  return false;
}

std::optional<double> seconds_a_gigabyte(const SwapTierWords& tier,
                                         const std::vector<TierMeasurement>& measured) {
  for (const auto& each : measured) {
    const auto &read = each.read_gb_per_s.value, &write = each.write_gb_per_s.value;
    if (is_of(tier, each) && read && write && *read > 0 && *write > 0)
      return 1 / *read + 1 / *write;
  }
  return std::nullopt;
}

}  // namespace

std::vector<SwapTierWords> fast_to_slow(std::vector<SwapTierWords> tiers,
                                        const std::vector<TierMeasurement>& measured) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < tiers.size(); ++i) {
    const auto seconds = seconds_a_gigabyte(tiers[i], measured);
    if (!seconds) return tiers;
    order.emplace_back(*seconds, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<SwapTierWords> sorted;
  for (const auto& [seconds, i] : order) sorted.push_back(std::move(tiers[i]));
  return sorted;
}

}  // namespace tierpilot::agent

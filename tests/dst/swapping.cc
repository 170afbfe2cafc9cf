#include "tests/dst/swapping.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/swap_room.h"
#include "tests/dst/random.h"

namespace tierpilot::dst {
namespace {

constexpr int64_t kMostMiB = 64;

}  // namespace

bool swaps(uint64_t seed, const Kinds& included) {
  return included.contains("swap-room") && Random(seed, "swap room").chance(0.4);
}

SwapTiers swap_tiers_of(uint64_t seed, int node, const Kinds& included) {
  if (!swaps(seed, included)) return {};
  Random random(seed, fmt::format("swap tiers of node {}", node));
  SwapTiers tiers;
  for (int64_t tier = random.between(0, 2); tier > 0; --tier)
    tiers.push_back({SwapTierWords::Kind::kNode,
                     static_cast<int>(tier),
                     {},
                     static_cast<uint64_t>(random.between(1, kMostMiB)) * kSwapRoomStepBytes});
  return tiers;
}

uint64_t offered_bytes(const SwapTiers& tiers) {
  uint64_t bytes = 0;
  for (const auto& tier : tiers) bytes += tier.bytes;
  return bytes;
}

SwapTiers less_of(SwapTiers tiers, uint64_t tenths) {
  for (auto& tier : tiers)
    tier.bytes = tier.bytes / kSwapRoomStepBytes * tenths / 10 * kSwapRoomStepBytes;
  std::erase_if(tiers, [](const SwapTierWords& tier) { return tier.bytes == 0; });
  return tiers;
}

void make_swappers(uint64_t seed, uint64_t number, const Kinds& included,
                   std::vector<TaskSpec>& tasks) {
  if (!swaps(seed, included)) return;
  Random random(seed, fmt::format("swap room {}", number));
  uint64_t most_bytes = kSwapRoomStepBytes;
  for (int node = 0; node < kNodes; ++node)
    most_bytes = std::max(most_bytes, offered_bytes(swap_tiers_of(seed, node, included)));
  const auto most_mib = static_cast<int64_t>(most_bytes / kSwapRoomStepBytes);
  for (auto& task : tasks) {
    if (random.chance(0.3)) continue;
    const bool is_large = random.chance(0.4), is_too_large = random.chance(0.02);
    const int64_t mib = is_large ? random.between((most_mib + 1) / 2, most_mib)
                                 : random.between(1, (most_mib + 3) / 4);
    task.swap_room_bytes =
        static_cast<uint64_t>(is_too_large ? most_mib + mib : mib) * kSwapRoomStepBytes;
    // Nobody knows when others give room back: a promise without a trial is refused.
    if (task.share.promise_ms > 0) task.share.promise_on_trial = true;
  }
}

}  // namespace tierpilot::dst

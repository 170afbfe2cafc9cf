#include "swap/tiers/tier_set.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <utility>

namespace tierpilot::swap {
namespace {

struct Known {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<TierSet>> sets;
};

// Never destroyed: programs end in any order.
std::atomic<Known*> all_known = new Known;

// A child of a fork has none of its parent's. Nothing is locked for the fork: whoever opens holds
// locks of others, which are taken for it too, in an order of their own.
Known& known() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { all_known = new Known; });
  (void)once;
  return *all_known;
}

}  // namespace

TierSet::TierSet(std::vector<MeasuredTier> tiers) : tiers_(std::move(tiers)) {
  for (const auto& tier : tiers_) extents_.emplace_back(tier.tier->capacity_bytes());
}

std::optional<int64_t> TierSet::take(size_t tier, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  return extents_[tier].take(bytes);
}

void TierSet::give_back(size_t tier, int64_t offset, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  extents_[tier].give_back(offset, bytes);
}

Result<std::shared_ptr<TierSet>> tiers_of_process(const std::string& name, const OpenTiers& open) {
  auto& mine = known();
  const std::lock_guard lock(mine.mutex);
  auto& set = mine.sets[name];
  if (auto there = set.lock()) return there;
  auto tiers = open();
  if (!tiers) return tl::unexpected(tiers.error());
  auto made = std::make_shared<TierSet>(std::move(*tiers));
  set = made;
  return made;
}

}  // namespace tierpilot::swap

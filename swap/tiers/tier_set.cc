#include "swap/tiers/tier_set.h"

#include <pthread.h>
#include <unistd.h>

#include <map>
#include <utility>

namespace tierpilot::swap {
namespace {

struct Known {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<TierSet>> sets;
};

// A child of a fork has none of its parent's.
Known& known() {
  static Known all;
  static const int once =
      pthread_atfork([] { known().mutex.lock(); }, [] { known().mutex.unlock(); },
                     [] {
                       known().sets.clear();
                       known().mutex.unlock();
                     });
  (void)once;
  return all;
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
  const std::lock_guard lock(known().mutex);
  auto& set = known().sets[name];
  if (auto there = set.lock()) return there;
  auto tiers = open();
  if (!tiers) return tl::unexpected(tiers.error());
  auto made = std::make_shared<TierSet>(std::move(*tiers));
  set = made;
  return made;
}

}  // namespace tierpilot::swap

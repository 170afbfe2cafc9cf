// Tiers that are open and measured, and what of each is taken: by one session, or by all of a
// process that were given the same ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "swap/extents.h"
#include "swap/tiers/tier_list.h"

namespace tierpilot::swap {

// From any thread.
class TierSet {
 public:
  // Fast to slow, not empty.
  explicit TierSet(std::vector<MeasuredTier> tiers);

  const std::vector<MeasuredTier>& tiers() const { return tiers_; }
  // The offset of a range that nobody has; nothing where none is large enough.
  std::optional<int64_t> take(size_t tier, int64_t bytes);
  void give_back(size_t tier, int64_t offset, int64_t bytes);

 private:
  const std::vector<MeasuredTier> tiers_;
  std::mutex mutex_;
  std::vector<Extents> extents_;
};

using OpenTiers = std::function<Result<std::vector<MeasuredTier>>()>;

// Those that this process has under that name already, else `open` makes them. Two sessions that
// each took all that the process may have would take twice of it.
Result<std::shared_ptr<TierSet>> tiers_of_process(const std::string& name, const OpenTiers& open);

}  // namespace tierpilot::swap

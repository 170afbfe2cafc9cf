#include "swap/warnings.h"

#include <fmt/format.h>

#include <utility>

namespace tierpilot::swap {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Who has written 4 for 4GiB should see it.
std::string said(int64_t bytes) {
  return bytes < kMiB ? fmt::format("{} bytes", bytes) : fmt::format("{} MiB", bytes / kMiB);
}

}  // namespace

std::string Warnings::next(int64_t wanted_bytes, int64_t budget_bytes, int64_t least_bytes,
                           const std::string& refusal) {
  const std::lock_guard lock(mutex_);
  if (!plans_refused_.empty())
    return "kept plans are not used: " + std::exchange(plans_refused_, {});
  if (!of_tiers_.empty()) return std::exchange(of_tiers_, {});
  if (budget_bytes < wanted_bytes &&
      std::exchange(lowered_said_bytes_, budget_bytes) != budget_bytes)
    return fmt::format("memory ran out: the budget is taken for {} MiB from now on, not for {} MiB",
                       budget_bytes / kMiB, wanted_bytes / kMiB);
  if (!refusal.empty() && std::exchange(refusal_said_, true)) return {};
  if (!refusal.empty())
    return fmt::format(
        "a budget of {} is not kept, as not all that is to leave finds room: {}; name more "
        "tiers, or larger ones, as in tiers=\"dir:/srv/slow=16GiB\"",
        said(budget_bytes), refusal);
  too_small_ = least_bytes > budget_bytes ? too_small_ + 1 : 0;
  if (too_small_ < 2 || std::exchange(too_small_said_, true)) return {};
  return fmt::format(
      "a budget of {} is too small: the largest operator with what must be beside it needs {} "
      "MiB",
      said(budget_bytes), (least_bytes + kMiB - 1) / kMiB);
}

}  // namespace tierpilot::swap

#include "daemon/memory/paging/planner.h"

namespace tierpilot {
namespace {

void fill_tier(Planner& planner, size_t tier) {
  const auto hottest = planner.by_heat(PagingPolicy::kHeat, true);
  auto evictable = planner.evictable(PagingPolicy::kHeat, tier);
  for (const size_t chunk : hottest) {
    if (planner.chunks()[chunk].heat < planner.input().limits.min_heat) return;
    if (planner.move_budget() == 0) return;
    if (planner.has_moved(chunk) || planner.bytes_below(chunk, tier) == 0) continue;
    planner.promote(chunk, tier, evictable, MoveReason::kHot);
  }
}

}  // namespace

void plan_excess(Planner& planner, PagingPolicy policy) {
  for (const size_t chunk : planner.by_heat(policy, false)) {
    const uint64_t excess = planner.group_excess(planner.chunks()[chunk].group);
    if (excess > 0 && planner.chunks()[chunk].bytes_in(0) > 0)
      planner.demote(chunk, 0, MoveReason::kOverBudget);
  }
}

void plan_heat(Planner& planner) {
  plan_excess(planner, PagingPolicy::kHeat);
  for (size_t tier = 0; tier + 1 < planner.input().tiers.size(); ++tier) fill_tier(planner, tier);
}

}  // namespace tierpilot

#include "daemon/memory/placement/planner.h"

namespace tierpilot {
namespace {

void fill_tier(Planner& planner, size_t tier) {
  const auto hottest = planner.by_heat(PlacementPolicy::kHeat, true);
  const auto coldest = planner.by_heat(PlacementPolicy::kHeat, false);
  for (const size_t unit : hottest) {
    if (planner.units()[unit].heat < planner.input().limits.min_heat) return;
    if (planner.move_budget() == 0) return;
    if (planner.has_moved(unit) || planner.bytes_below(unit, tier) == 0) continue;
    planner.promote(unit, tier, coldest, MoveReason::kHot);
  }
}

}  // namespace

void plan_excess(Planner& planner, PlacementPolicy policy) {
  for (const size_t unit : planner.by_heat(policy, false)) {
    const uint64_t excess = planner.group_excess(planner.units()[unit].group);
    if (excess > 0 && planner.units()[unit].bytes_in(0) > 0)
      planner.demote(unit, 0, MoveReason::kOverBudget);
  }
}

void plan_heat(Planner& planner) {
  plan_excess(planner, PlacementPolicy::kHeat);
  for (size_t tier = 0; tier + 1 < planner.input().tiers.size(); ++tier) fill_tier(planner, tier);
}

}  // namespace tierpilot

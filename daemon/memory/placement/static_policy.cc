#include "daemon/memory/placement/planner.h"

namespace tierpilot {

void plan_static(Planner& planner) {
  plan_excess(planner, PlacementPolicy::kStatic);
  const auto& input = planner.input();
  for (size_t i = 0; i < planner.units().size(); ++i) {
    const PlacementUnit& unit = planner.units()[i];
    const PlacementGroup& group = input.groups[unit.group];
    if (group.policy != PlacementPolicy::kStatic || !unit.heat_known || planner.has_moved(i))
      continue;
    const uint64_t bytes = unit.resident_bytes() - unit.bytes_in(group.static_tier);
    if (bytes == 0 || bytes > planner.move_budget()) continue;
    if (bytes <= planner.room_in(group.static_tier) &&
        bytes <= planner.room_in_budget(unit.group, group.static_tier))
      planner.move(i, group.static_tier, MoveReason::kRule);
  }
}

}  // namespace tierpilot

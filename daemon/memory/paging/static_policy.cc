#include "daemon/memory/paging/planner.h"

namespace tierpilot {

void plan_static(Planner& planner) {
  plan_excess(planner, PagingPolicy::kStatic);
  const auto& input = planner.input();
  for (size_t i = 0; i < planner.chunks().size(); ++i) {
    const PagingChunk& chunk = planner.chunks()[i];
    const PagingGroup& group = input.groups[chunk.group];
    if (group.policy != PagingPolicy::kStatic || !chunk.heat_known || planner.has_moved(i))
      continue;
    const uint64_t bytes = chunk.resident_bytes() - chunk.bytes_in(group.static_tier);
    if (bytes == 0 || bytes > planner.move_budget()) continue;
    if (bytes <= planner.room_in(group.static_tier) &&
        bytes <= planner.room_in_budget(chunk.group, group.static_tier))
      planner.move(i, group.static_tier, MoveReason::kRule);
  }
}

}  // namespace tierpilot

#include "coordinator/core/queue/kept_back.h"

#include <fmt/format.h>

namespace tierpilot {

std::optional<KeptBack> kept_back(const ClusterState& state, const Task& task) {
  const auto* held = state.held.find(task.id);
  if (!held || held->awake) return std::nullopt;
  const std::string node = state.registry.slots().name_of(held->slot);
  const auto data = state.catalog.held(task.spec, node);
  const int64_t boot_to_wall_ms = state.clock.wall_ms() - state.clock.boot_ns() / 1'000'000;
  return KeptBack{
      node,
      fmt::format("kept back for node '{}', which is full and {}", node,
                  data.fast_bytes + data.slow_bytes > 0 ? "has its data"
                                                        : "would still have it done sooner"),
      boot_to_wall_ms + held->since_ns / 1'000'000, boot_to_wall_ms + held->until_ns / 1'000'000};
}

}  // namespace tierpilot

#include "coordinator/core/outcomes/too_large.h"

#include <fmt/format.h>

#include "base/text/thousands.h"

namespace tierpilot {

std::string too_large_for_all(const Registry& registry, const Task& task, const TaskExit& exit) {
  if (exit.how != TaskEnd::kDataFailed || exit.no_room_bytes == 0) return {};
  const auto& only = task.spec.node;
  if (only.empty() && !registry.knows_all_shapes()) return {};
  const NodeFacts* largest = nullptr;
  for (const auto& [name, node] : registry.all()) {
    if (!only.empty() && name != only) continue;
    const uint64_t most_bytes = node.facts.largest_write_bytes;
    if (most_bytes == 0 || most_bytes >= exit.no_room_bytes) return {};
    if (!largest || most_bytes > largest->largest_write_bytes) largest = &node.facts;
  }
  if (!largest) return {};
  return fmt::format(
      "it wrote {} bytes to a dataset, and {} has a tier for so many: {} on node '{}' {}. Write "
      "less, or to several datasets, or raise [pool] slow_budget in tierpilotd.toml of a node",
      with_thousands(std::to_string(exit.no_room_bytes)),
      only.empty() ? "no node" : "the node that it asks for",
      with_thousands(std::to_string(largest->largest_write_bytes)), largest->name,
      only.empty() ? "are the most" : "are all");
}

}  // namespace tierpilot

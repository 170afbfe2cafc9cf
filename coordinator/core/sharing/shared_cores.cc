#include "coordinator/core/sharing/shared_cores.h"

#include "model/unit_id.h"

namespace tierpilot {

std::vector<SharedCores> shared_cores_after(const Registry& registry, const std::string& after,
                                            size_t most) {
  std::vector<SharedCores> found;
  const auto last = parse_shared_cores_id(after);
  const auto& nodes = registry.all();
  auto node = last ? nodes.lower_bound(std::string(last->node)) : nodes.begin();
  for (; node != nodes.end(); ++node) {
    const auto& units = node->second.facts.shared_units;
    const bool goes_on = last && node->first == last->node;
    for (size_t u = goes_on ? size_t{last->number} + 1 : 0; u < units.size(); ++u) {
      if (units[u].engine() != Engine::kCpu) continue;
      if (found.size() >= most) return found;
      const auto number = static_cast<uint32_t>(u);
      found.push_back({shared_cores_id(node->first, number), &node->second, number});
    }
  }
  return found;
}

std::optional<SharedCores> find_shared_cores(const Registry& registry, const std::string& id) {
  const auto name = parse_shared_cores_id(id);
  const auto* node = name ? registry.find(std::string(name->node)) : nullptr;
  if (!node || name->number >= node->facts.shared_units.size() ||
      node->facts.shared_units[name->number].engine() != Engine::kCpu)
    return std::nullopt;
  return SharedCores{id, node, name->number};
}

}  // namespace tierpilot

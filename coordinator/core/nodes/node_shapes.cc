#include "coordinator/core/nodes/node_shapes.h"

#include <algorithm>

namespace tierpilot {

NodeShape shape_of(const NodeFacts& facts) {
  return {facts.units, facts.memory_bytes, facts.fast_budget_bytes};
}

void NodeShapes::add(const NodeShape& shape) {
  if (hold(shape)) return;
  std::erase_if(shapes_, [&](const NodeShape& other) { return shape.holds(other); });
  shapes_.push_back(shape);
}

bool NodeShapes::hold(const NodeShape& needed) const {
  return std::any_of(shapes_.begin(), shapes_.end(),
                     [&](const NodeShape& shape) { return shape.holds(needed); });
}

NodeShape NodeShapes::largest() const {
  NodeShape most;
  for (const auto& shape : shapes_)
    most = {std::max(most.units, shape.units), std::max(most.memory_bytes, shape.memory_bytes),
            std::max(most.fast_budget_bytes, shape.fast_budget_bytes)};
  return most;
}

}  // namespace tierpilot

#include "coordinator/core/nodes/node_shapes.h"

#include <algorithm>
#include <numeric>

namespace tierpilot {

void NodeShapes::add(const Resources& node) {
  if (hold(node)) return;
  std::erase_if(shapes_, [&](const Resources& other) { return node.hold(other); });
  shapes_.push_back(node);
}

bool NodeShapes::hold(const Resources& needed) const {
  return std::any_of(shapes_.begin(), shapes_.end(),
                     [&](const Resources& shape) { return shape.hold(needed); });
}

Resources NodeShapes::largest() const {
  return std::accumulate(shapes_.begin(), shapes_.end(), Resources(), most_of);
}

}  // namespace tierpilot

// What nodes are large enough for.
#pragma once

#include <vector>

#include "coordinator/core/nodes/node_record.h"

namespace tierpilot {

// The shapes of some nodes, without those that another one of them holds: mostly one or two.
class NodeShapes {
 public:
  void add(const NodeShape& shape);
  bool empty() const { return shapes_.empty(); }
  // One of the nodes has all of it.
  bool hold(const NodeShape& needed) const;
  // The most that any has of each; no node may have all of it.
  NodeShape largest() const;

 private:
  std::vector<NodeShape> shapes_;
};
NodeShape shape_of(const NodeFacts& facts);

}  // namespace tierpilot

// What nodes are large enough for.
#pragma once

#include <vector>

#include "model/resources.h"

namespace tierpilot {

// What some nodes have, without those of whom another one has as much of all: mostly one or two.
class NodeShapes {
 public:
  void add(const Resources& node);
  bool empty() const { return shapes_.empty(); }
  // One of the nodes has all of it.
  bool hold(const Resources& needed) const;
  // The most that any has of each; no node may have all of it.
  Resources largest() const;

 private:
  std::vector<Resources> shapes_;
};

}  // namespace tierpilot

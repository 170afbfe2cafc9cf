// Having a node discard what the cluster goes on without. Event loop thread only.
#pragma once

#include "coordinator/core/cluster_state.h"

namespace tierpilot {

// Just these bytes under this number; nothing if the node is not connected: it tells of them when
// it joins.
inline void discard(Catalog::Entry& entry, NodeRecord& node, const DatasetVersion& what) {
  if (!node.link) return;
  entry.discarded[node.facts.name].emplace(what.version, what.digest);
  node.link->discard_version(what);
}

}  // namespace tierpilot

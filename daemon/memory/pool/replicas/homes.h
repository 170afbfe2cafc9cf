// Replicas that this node keeps until it is told to drop them.
#pragma once

#include <memory>

#include "daemon/memory/pool/remote.h"
#include "daemon/memory/pool/replicas/holdings.h"
#include "daemon/memory/pool/replicas/pool_room.h"

namespace tierpilot {

class HomeReplicas {
 public:
  HomeReplicas(Holdings& holdings, PoolRoom& room, std::shared_ptr<RemoteSource> remote)
      : holdings_(holdings), room_(room), remote_(std::move(remote)) {}

  // Blocks. A home replica of a durable slow tier is written there first. kNotFound: nothing is
  // here.
  Status set_home(const DatasetId& id, bool home, const CancelFlag& cancel);
  // Blocks. One that only memory has is written to the disk anew, if there is room: its copy there
  // was damaged, and a reboot would take the last of it.
  void mend(const DatasetId& id, const CancelFlag& cancel);
  // Blocks. A home replica of what other nodes have, or of what is here.
  Result<ReplicaChange> keep(const ServeItem& item, const CancelFlag& cancel);

 private:
  Holdings& holdings_;
  PoolRoom& room_;
  const std::shared_ptr<RemoteSource> remote_;
};

}  // namespace tierpilot

// The replicas of one node, by what is done with them. All is thread-safe; what says that it blocks
// does I/O, with the lock released, and belongs on a worker thread.
#pragma once

#include <memory>

#include "daemon/memory/pool/remote.h"
#include "daemon/memory/pool/replicas/admission.h"
#include "daemon/memory/pool/replicas/copy_checks.h"
#include "daemon/memory/pool/replicas/doomed_replicas.h"
#include "daemon/memory/pool/replicas/holdings.h"
#include "daemon/memory/pool/replicas/homes.h"
#include "daemon/memory/pool/replicas/loader.h"
#include "daemon/memory/pool/replicas/new_datasets.h"
#include "daemon/memory/pool/replicas/pool_room.h"
#include "daemon/memory/pool/replicas/private_copies.h"
#include "daemon/memory/pool/replicas/replica_reader.h"

namespace tierpilot {

struct ReplicaManager {
  // Blocks. Finds what an earlier run left. Errors as of PoolTiers::open() and rescan().
  static Result<std::unique_ptr<ReplicaManager>> open(const PoolOptions& options,
                                                      const std::shared_ptr<RemoteSource>& remote,
                                                      Holdings::OnChange on_change);
  ReplicaManager(const PoolOptions& options, PoolTiers tiers,
                 const std::shared_ptr<RemoteSource>& remote, Holdings::OnChange on_change);

  MovementTotals totals() const;

  Holdings holdings;
  PoolRoom room;
  ServeAdmission admission;
  ReplicaLoader loader;
  PrivateCopies private_copies;
  NewDatasets new_datasets;
  HomeReplicas homes;
  CopyChecks checks;
  DoomedReplicas doomed;
  ReplicaReader reader;
};

}  // namespace tierpilot

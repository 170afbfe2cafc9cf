// The Cluster interface as one client sees it.
#pragma once

#include <memory>

#include "coordinator/service/dataset_service.h"
#include "coordinator/service/node_service.h"
#include "coordinator/service/policy_service.h"
#include "coordinator/service/task_service.h"
#include "coordinator/service/unit_service.h"

namespace tierpilot {

class ClusterService final : public NodeService,
                             public DatasetService,
                             public TaskService,
                             public PolicyService,
                             public UnitService {
 public:
  ClusterService(ServiceContext& shared, Peer peer)
      : ClusterService(std::make_shared<Caller>(shared, std::move(peer))) {}

  kj::Promise<void> health(HealthContext context) override;
  kj::Promise<void> hello(HelloContext context) override;
  kj::Promise<void> backup(BackupContext context) override;

 private:
  explicit ClusterService(const std::shared_ptr<Caller>& caller)
      : NodeService(caller),
        DatasetService(caller),
        TaskService(caller),
        PolicyService(caller),
        UnitService(caller),
        caller_(caller) {}

  std::shared_ptr<Caller> caller_;
};

}  // namespace tierpilot

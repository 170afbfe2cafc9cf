// The Cluster interface's part about datasets.
#pragma once

#include <memory>

#include "coordinator/service/caller.h"
#include "rpc/cluster.capnp.h"

namespace tierpilot {

class DatasetService : public virtual wire::Cluster::Server {
 public:
  explicit DatasetService(std::shared_ptr<Caller> caller) : caller_(std::move(caller)) {}

  kj::Promise<void> datasetAdd(DatasetAddContext context) override;
  kj::Promise<void> datasetList(DatasetListContext context) override;
  kj::Promise<void> datasetShow(DatasetShowContext context) override;
  kj::Promise<void> datasetCheck(DatasetCheckContext context) override;
  kj::Promise<void> datasetRemove(DatasetRemoveContext context) override;

 private:
  std::shared_ptr<Caller> caller_;
};

}  // namespace tierpilot

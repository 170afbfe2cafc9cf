// The Cluster interface's part about the units that gangs run on.
#pragma once

#include <memory>

#include "coordinator/service/caller.h"
#include "rpc/cluster.capnp.h"

namespace tierpilot {

class UnitService : public virtual wire::Cluster::Server {
 public:
  explicit UnitService(std::shared_ptr<Caller> caller) : caller_(std::move(caller)) {}

  kj::Promise<void> unitList(UnitListContext context) override;
  kj::Promise<void> unitShow(UnitShowContext context) override;
  kj::Promise<void> unitOrder(UnitOrderContext context) override;

 private:
  std::shared_ptr<Caller> caller_;
};

}  // namespace tierpilot

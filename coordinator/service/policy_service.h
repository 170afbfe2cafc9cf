// The Cluster interface's part about policies.
#pragma once

#include <memory>
#include <string>

#include "coordinator/service/caller.h"
#include "rpc/cluster.capnp.h"

namespace tierpilot {

class PolicyService : public virtual wire::Cluster::Server {
 public:
  explicit PolicyService(std::shared_ptr<Caller> caller) : caller_(std::move(caller)) {}

  kj::Promise<void> policyList(PolicyListContext context) override;
  kj::Promise<void> policyShow(PolicyShowContext context) override;
  kj::Promise<void> policyUse(PolicyUseContext context) override;
  kj::Promise<void> policyMode(PolicyModeContext context) override;
  kj::Promise<void> policyRollback(PolicyRollbackContext context) override;
  kj::Promise<void> policyCompare(PolicyCompareContext context) override;

 private:
  void write_policy(const PlacementModule& policy, wire::PolicyEntry::Builder out) const;
  const PlacementModule& policy_named(const std::string& name) const;

  std::shared_ptr<Caller> caller_;
};

}  // namespace tierpilot

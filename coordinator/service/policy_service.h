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
  // A policy of a kind that `policy use` chooses: of tasks, or of gangs ("ac" or "gang/ac"; of two
  // with one name the one for tasks).
  struct Known {
    const PlacementModule* of_tasks = nullptr;
    const gang::PlacerModule* of_gangs = nullptr;

    const PolicyInfo& info() const { return of_tasks ? of_tasks->info : of_gangs->info; }
    bool learns() const { return of_tasks ? of_tasks->learning != nullptr : of_gangs->learned; }
    const char* decides() const;
    // As decisions and its standing have it.
    std::string full_name() const;
  };

  Known policy_named(const std::string& name) const;
  Oversight& oversight_of(const Known& policy) const;
  bool is_active(const Known& policy) const;
  void write_policy(const Known& policy, wire::PolicyEntry::Builder out) const;
  void write_learner(const PlacementModule& policy, PolicyShowContext& context) const;

  std::shared_ptr<Caller> caller_;
};

}  // namespace tierpilot

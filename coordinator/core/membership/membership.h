// Who belongs to the cluster: joining under a name, leases, coming back, being lost.
// Event loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/outcomes/lifecycle.h"

namespace tierpilot {

class Membership {
 public:
  Membership(ClusterState& state, Lifecycle& lifecycle) : state_(state), lifecycle_(lifecycle) {}

  // One joining of a daemon; updates of an older one are refused.
  struct Ticket {
    std::string node;
    uint64_t join = 0;
  };

  // kConflict while another instance of the name may still run tasks; kInvalid for an unusable name
  // or no units.
  Result<Ticket> join(const NodeFacts& facts, std::shared_ptr<NodeLink> link,
                      const std::vector<std::pair<std::string, ReplicaState>>& replicas,
                      const std::set<AttemptId>& live);
  // Its connection is gone; the lease runs on.
  void disconnected(const Ticket& ticket);
  // Its daemon ends, as was asked of it: no news of a lease that is over. The lease runs on.
  Status left(const Ticket& ticket);
  // The node behind the ticket, its lease renewed; kConflict when it has to join again.
  Result<NodeRecord*> renew(const Ticket& ticket);
  // What a node says with each update: why it takes no tasks; empty: it takes them.
  void says(NodeRecord& node, const std::string& takes_none);
  // And which of its units are to get no new work, by what follows the node in their names.
  void says_unhealthy(const NodeRecord& node, const std::map<std::string, std::string>& reasons);
  // So many events, which were all that it had to tell if they are fewer than fit an update.
  static void told(NodeRecord& node, size_t events);
  void replica_changed(const std::string& node, const std::string& dataset,
                       const ReplicaState& replica);
  // A node holds it, or does no more. Of one that joins before its tasks are looked at, which may
  // begin anew from what it has.
  std::function<void(const std::string& node, const std::string& dataset, const ReplicaState&)>
      on_replica = [](const auto&, const auto&, const auto&) {};
  // Gives up the nodes whose lease has passed, and ends pauses.
  void expire();

 private:
  // What the node wrote, died over and can tell nobody of any more: its writer runs again, and must
  // find the number free.
  void discard_unclaimed(NodeRecord& node,
                         const std::vector<std::pair<std::string, ReplicaState>>& replicas,
                         const std::set<AttemptId>& live);
  // Has it drop the datasets whose removal it may not have heard of; `replicas`: what it holds.
  std::set<std::string> ask_for_owed_drops(
      NodeRecord& node, const std::vector<std::pair<std::string, ReplicaState>>& replicas);
  void owes_no_more(const std::string& node, const std::set<std::string>& gone);

  ClusterState& state_;
  Lifecycle& lifecycle_;
  uint64_t joins_ = 0;
  std::map<std::string, uint64_t> current_join_;  // by node
};

}  // namespace tierpilot

// The Cluster interface as one client sees it.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/service/access.h"
#include "coordinator/service/backup_service.h"
#include "coordinator/service/core.h"
#include "coordinator/service/node_cards.h"
#include "coordinator/service/submission_audit.h"
#include "rpc/cluster.capnp.h"
#include "rpc/event_loop.h"
#include "rpc/server.h"

namespace tierpilot {

// What all clients share.
struct ServiceContext {
  EventLoop& loop;
  Core& core;
  NodeCards& cards;
  BackupMaker& backups;
  int64_t started_ms = 0;
  std::function<uint64_t()> rejected_frames;
  AccessRules access{};
  uint64_t access_version = 0;
  SubmissionAudit submissions{};

  // For every call from now on.
  void set_access(AccessRules rules) {
    access = std::move(rules);
    ++access_version;
  }
};

class ClusterService final : public wire::Cluster::Server {
 public:
  ClusterService(ServiceContext& shared, Peer peer)
      : shared_(shared), peer_(std::move(peer)), who_(described(peer_)) {}

  kj::Promise<void> health(HealthContext context) override;
  kj::Promise<void> hello(HelloContext context) override;
  kj::Promise<void> registerNode(RegisterNodeContext context) override;
  kj::Promise<void> nodeList(NodeListContext context) override;
  kj::Promise<void> nodeShow(NodeShowContext context) override;
  kj::Promise<void> nodeOrder(NodeOrderContext context) override;
  kj::Promise<void> nodeRemove(NodeRemoveContext context) override;
  kj::Promise<void> datasetAdd(DatasetAddContext context) override;
  kj::Promise<void> datasetList(DatasetListContext context) override;
  kj::Promise<void> datasetShow(DatasetShowContext context) override;
  kj::Promise<void> datasetCheck(DatasetCheckContext context) override;
  kj::Promise<void> datasetRemove(DatasetRemoveContext context) override;
  kj::Promise<void> submit(SubmitContext context) override;
  kj::Promise<void> taskList(TaskListContext context) override;
  kj::Promise<void> taskShow(TaskShowContext context) override;
  kj::Promise<void> taskWait(TaskWaitContext context) override;
  kj::Promise<void> taskCancel(TaskCancelContext context) override;
  kj::Promise<void> taskPause(TaskPauseContext context) override;
  kj::Promise<void> taskLog(TaskLogContext context) override;
  kj::Promise<void> taskExplain(TaskExplainContext context) override;
  kj::Promise<void> historyTasks(HistoryTasksContext context) override;
  kj::Promise<void> policyList(PolicyListContext context) override;
  kj::Promise<void> policyShow(PolicyShowContext context) override;
  kj::Promise<void> policyUse(PolicyUseContext context) override;
  kj::Promise<void> policyMode(PolicyModeContext context) override;
  kj::Promise<void> policyRollback(PolicyRollbackContext context) override;
  kj::Promise<void> policyCompare(PolicyCompareContext context) override;
  kj::Promise<void> backup(BackupContext context) override;
  kj::Promise<void> unitList(UnitListContext context) override;
  kj::Promise<void> unitShow(UnitShowContext context) override;
  kj::Promise<void> unitOrder(UnitOrderContext context) override;

 private:
  Core& core() { return shared_.core; }
  Role role() const;
  bool sees_environments() const { return shared_.access.sees_environments(peer_); }
  // These throw kDenied where the peer may only do less.
  void allow_reading() const;
  // What is accepted goes into the log later, see SubmissionAudit.
  void allow_submit() const;
  // Goes into the log with who asked for it, allowed or not.
  void allow_change(Role needed, const std::string& what) const;
  // In the audit log.
  void record(const std::string& what, bool allowed) const;
  std::string caller() const { return who_ + " over " + peer_.transport; }
  // Its submitter's, or an operator's.
  void allow_change_of(const Task& task, const std::string& what) const;
  void write_node(const NodeRecord& node, wire::NodeEntry::Builder out);
  // As it is in memory or on disk, with what keeps it back.
  void write(const Task& task, wire::Task::Builder out);
  std::vector<Task> ranks_of(const Task& gang);
  void write_ranks(const Task& gang, wire::Task::Builder out);
  // Of one that is over: what it had last.
  std::optional<ShownShare> share_of(const Task& task);
  // The one whose output stands for a gang's; other tasks stand for themselves.
  const Task& first_rank(const Task& task, std::vector<Task>& ranks);
  void write_policy(const PlacementModule& policy, wire::PolicyEntry::Builder out);
  const PlacementModule& policy_named(const std::string& name);
  // kUnreachable: "task 3: it runs on node 'n1', which is not connected", `what` being "it runs
  // on".
  wire::Node::Client& node_of(const Task& task, const char* what);

  ServiceContext& shared_;
  Peer peer_;
  const std::string who_;
  // As the rules of this version say; looked up again when there are others.
  mutable std::optional<uint64_t> role_version_;
  mutable Role role_ = Role::kNone;
  // Of each taskWait under way; shared, as a call may outlive this object by a turn of the loop.
  std::shared_ptr<std::list<std::vector<EndWaits::Wait>>> waits_ =
      std::make_shared<std::list<std::vector<EndWaits::Wait>>>();
};

}  // namespace tierpilot

// What the coordinator may ask of this node (wire::Node).
#pragma once

#include "daemon/agent/job_channel/job_channels.h"
#include "daemon/agent/node/completions.h"
#include "daemon/agent/tasks/task_dirs.h"
#include "daemon/agent/tasks/task_table.h"
#include "daemon/memory/pool/pool.h"
#include "rpc/node.capnp.h"

namespace tierpilot::agent {

// Owned by Cap'n Proto on the event loop's thread; what it refers to must outlive its connections.
class NodeService final : public wire::Node::Server {
 public:
  NodeService(TaskTable& tasks, Pool& pool, const TaskDirs& dirs, JobChannels& channels,
              bool other_users)
      : tasks_(tasks), pool_(pool), dirs_(dirs), channels_(channels), other_users_(other_users) {}

  kj::Promise<void> start(StartContext context) override;
  kj::Promise<void> cancel(CancelContext context) override;
  kj::Promise<void> pause(PauseContext context) override;
  kj::Promise<void> createDataset(CreateDatasetContext context) override;
  kj::Promise<void> dropDataset(DropDatasetContext context) override;
  kj::Promise<void> keepDataset(KeepDatasetContext context) override;
  kj::Promise<void> verifyDataset(VerifyDatasetContext context) override;
  kj::Promise<void> setShare(SetShareContext context) override;
  kj::Promise<void> tellJob(TellJobContext context) override;
  kj::Promise<void> readLog(ReadLogContext context) override;
  kj::Promise<void> setHome(SetHomeContext context) override;

 private:
  TaskTable& tasks_;
  Pool& pool_;
  const TaskDirs& dirs_;
  JobChannels& channels_;
  const bool other_users_;  // tasks have
  Completions<ReplicaChange> creations_;
  Completions<ReplicaCheck> checks_;
  Completions<void> changes_;
};

}  // namespace tierpilot::agent

// The Cluster interface's part about tasks.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/service/caller.h"
#include "rpc/cluster.capnp.h"

namespace tierpilot {

class TaskService : public virtual wire::Cluster::Server {
 public:
  explicit TaskService(std::shared_ptr<Caller> caller) : caller_(std::move(caller)) {}

  kj::Promise<void> submit(SubmitContext context) override;
  kj::Promise<void> taskList(TaskListContext context) override;
  kj::Promise<void> taskShow(TaskShowContext context) override;
  kj::Promise<void> taskWait(TaskWaitContext context) override;
  kj::Promise<void> taskCancel(TaskCancelContext context) override;
  kj::Promise<void> taskPause(TaskPauseContext context) override;
  kj::Promise<void> taskLog(TaskLogContext context) override;
  kj::Promise<void> taskExplain(TaskExplainContext context) override;
  kj::Promise<void> historyTasks(HistoryTasksContext context) override;

 private:
  // As it is in memory or on disk, with what keeps it back.
  void write(const Task& task, wire::Task::Builder out) const;
  // Of one that is over: what it had last.
  std::optional<ShownShare> share_of(const Task& task) const;
  // kUnreachable: "task 3: it runs on node 'n1', which is not connected", `what` being "it runs
  // on".
  wire::Node::Client& node_of(const Task& task, const char* what) const;

  // Of each taskWait under way; shared, as a call may outlive this object by a turn of the loop.
  std::shared_ptr<std::list<std::vector<EndWaits::Wait>>> waits_ =
      std::make_shared<std::list<std::vector<EndWaits::Wait>>>();
  std::shared_ptr<Caller> caller_;
};

}  // namespace tierpilot

// The executor as the task lifecycle sees it: directories, environment and launch on the way in, an
// exit report on the way out.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/agent/gpus/gpu_shares.h"
#include "daemon/agent/job_channel/checkpoints.h"
#include "daemon/agent/paging/paging.h"
#include "daemon/agent/tasks/cpu_shares.h"
#include "daemon/agent/tasks/swap_room.h"
#include "daemon/agent/tasks/task_dirs.h"
#include "daemon/agent/tasks/task_table.h"
#include "daemon/agent/tasks/task_users.h"
#include "daemon/exec/executor.h"
#include "daemon/probe/passive/passive_probe.h"

namespace tierpilot::agent {

// Owned by the event loop's thread.
class ExecRunner final : public TaskRunner {
 public:
  struct Options {
    std::string node;
    int64_t cancel_grace_ms = 2000;
    std::string task_root;
  };
  // `probe` may be null.
  ExecRunner(Options options, Executor& executor, TaskDirs& dirs, TaskUsers& users,
             Paging& placement, JobChannels& channels, Checkpoints& checkpoints, CpuShares& shares,
             GpuShares& gpus, SwapRoom& swap_room, PassiveProbe* probe)
      : options_(std::move(options)),
        executor_(executor),
        dirs_(dirs),
        users_(users),
        placement_(placement),
        channels_(channels),
        checkpoints_(checkpoints),
        shares_(shares),
        gpus_(gpus),
        swap_room_(swap_room),
        self_(std::make_shared<ExecRunner*>(this)),
        probe_(probe) {}

  Status launch(const LaunchOrder& order) override;
  void cancel(AttemptId attempt, const std::string& reason) override;
  Status pause(AttemptId attempt, bool paused) override;
  void confine(AttemptId attempt, const CpuShare& share) override;
  void confine_gpu(AttemptId attempt, uint32_t milli) override;
  void forget(uint64_t task) override { executor_.forget(task); }
  void acknowledged(AttemptId attempt) override;

  // Ends that an earlier daemon may not have reported.
  std::vector<std::pair<AttemptId, ExitReport>> kept_exits();

  // What could not be launched after all, once its user was known.
  std::function<void(AttemptId, ExitReport)> failed = [](AttemptId, const ExitReport&) {};

  // Passes on what the executor has to tell. Call it when its event_fd is readable.
  void deliver(TaskTable& tasks);

 private:
  struct Launched {
    PlacedTask placed;
    std::string memory_outcome;
  };

  // A LaunchOrder that waits until it is known who runs it.
  struct Waiting {
    Assignment assignment;
    std::vector<ServedItem> datasets;
    std::vector<int> cpus;
    std::string gpu;

    LaunchOrder order() const { return {assignment, datasets, cpus, gpu}; }
  };

  void user_found(AttemptId attempt, const Result<TaskUser>& user);
  Status launch_as(const LaunchOrder& order, const std::optional<TaskUser>& user);
  Status start_in(const std::filesystem::path& dir, const LaunchOrder& order,
                  const std::optional<TaskUser>& user);
  // Room for swapping, where it asks for some: who runs it has to give that back.
  Status give_swap_room(const Assignment& assignment, TaskLaunch& task);
  void take(TaskEvent& event, TaskTable& tasks);
  void started(const TaskStarted& event, TaskTable& tasks);
  void ended(ProcessExit exit, TaskTable& tasks);
  OwnCgroup own_cgroup(AttemptId attempt) const;
  ExitReport report(ProcessExit exit);

  const Options options_;
  Executor& executor_;
  TaskDirs& dirs_;
  TaskUsers& users_;
  Paging& placement_;
  JobChannels& channels_;
  Checkpoints& checkpoints_;
  CpuShares& shares_;
  GpuShares& gpus_;
  SwapRoom& swap_room_;
  // Looks at GPUs that outlive it find it gone.
  std::shared_ptr<ExecRunner*> self_;
  PassiveProbe* probe_;
  std::map<AttemptId, Waiting> waiting_;
  std::map<AttemptId, Launched> launched_;
  std::map<AttemptId, std::string> cancel_reasons_;
  std::map<AttemptId, pid_t> groups_;  // process groups whose I/O the probe counts
};

}  // namespace tierpilot::agent

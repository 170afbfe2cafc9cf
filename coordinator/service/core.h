// The coordinator without its wires: state and the parts that change it, put together.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/data/dataset_admin.h"
#include "coordinator/core/data/dataset_check.h"
#include "coordinator/core/data/replicator.h"
#include "coordinator/core/data/write_copies.h"
#include "coordinator/core/dispatch/dispatcher.h"
#include "coordinator/core/elastic/elastic_cores.h"
#include "coordinator/core/elastic/gang_growth.h"
#include "coordinator/core/elastic/gang_losses.h"
#include "coordinator/core/gangs/checkpoints.h"
#include "coordinator/core/gangs/gang_life.h"
#include "coordinator/core/membership/membership.h"
#include "coordinator/core/membership/node_admin.h"
#include "coordinator/core/outcomes/end_waits.h"
#include "coordinator/core/outcomes/history.h"
#include "coordinator/core/outcomes/lifecycle.h"
#include "coordinator/core/outcomes/progress_keeper.h"
#include "coordinator/core/queue/due_times.h"
#include "coordinator/core/queue/intake.h"
#include "coordinator/core/sharing/share_keeper.h"

namespace tierpilot {

class Core {
 public:
  Core(const CoreSettings& settings, const Clock& clock, Store& store, PolicyHost& host,
       Dispatcher::Hooks hooks);

  // Leases, writes that failed, history that is old: several times a second.
  void tick();
  // After restore(). Takes up the policies' modes and standings.
  Status begin(const OversightSettings& settings, int64_t version_interval_ms);
  using VersionDone = std::function<void(Result<WeightsVersion>)>;
  // See PolicyHost; `done` runs on the loop.
  void roll_back(const std::string& policy, uint64_t number, const std::string& who,
                 VersionDone done);
  // Calls `done` once, when the task has ended durably; at once, with no wait, when it has.
  [[nodiscard]] std::optional<EndWaits::Wait> when_ended(uint64_t task, std::function<void()> done);
  size_t waits() const { return waits_.size(); }
  // Expires with it.
  std::weak_ptr<const bool> lives() const { return lives_; }
  // What a running job said of itself.
  void reported(const Task& task, JobPoint report);
  // What may be told of a task, see told_task.h; kNotFound where there is none.
  Result<Task> task(uint64_t id);

  ClusterState state;
  PolicyHost& host;
  Oversight oversight;
  Dispatcher dispatcher;
  Lifecycle lifecycle;
  DueTimes due_times;
  GangLife gangs;
  ElasticCores elastic;
  GangGrowth growth;
  GangLosses gang_losses;
  Intake intake;
  Membership membership;
  DatasetAdmin datasets;
  DatasetChecker checker;
  CopyOrders orders;
  Replicator replicator;
  WriteCopies copies;
  Checkpoints checkpoints;
  ShareKeeper shares;
  History history;
  ProgressKeeper progress;
  NodeAdmin nodes;

 private:
  // Dispatches what can be.
  void pump();
  void rolled_back(uint64_t id, const std::string& policy, const std::string& who,
                   const Result<WeightsVersion>& version);
  void keep_versions(const std::string& why);
  WeightsVersion about(const std::string& policy, const std::string& why);

  EndWaits waits_;
  int64_t next_retry_ns_ = 0;
  std::function<void(std::function<void()>)> post_;
  std::map<uint64_t, VersionDone> rolling_back_;
  uint64_t last_roll_back_ = 0;
  int64_t version_interval_ns_ = 0;
  int64_t next_versions_ns_ = 0;
  const std::shared_ptr<const bool> lives_ = std::make_shared<const bool>(true);  // ends first
};

}  // namespace tierpilot

// Everything the coordinator holds in memory, and what it works with. Event loop thread only.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "coordinator/core/data/catalog.h"
#include "coordinator/core/decisions/scoreboard.h"
#include "coordinator/core/gangs/gang_book.h"
#include "coordinator/core/gangs/unit_book.h"
#include "coordinator/core/nodes/registry.h"
#include "coordinator/core/outcomes/ending_attempts.h"
#include "coordinator/core/owed_writes.h"
#include "coordinator/core/queue/queue_load.h"
#include "coordinator/core/queue/queue_order.h"
#include "coordinator/core/queue/task_book.h"
#include "coordinator/store/store.h"
#include "policies/gang/learned/hosted_placers.h"
#include "policies/placement/reward.h"
#include "policies/scheduling/held_tasks.h"
#include "policies/sharing/predict/job_predictor.h"

namespace tierpilot {

struct CoreSettings {
  int64_t lease_ms = 10'000;
  ServiceOrder service_order = ServiceOrder::kShortest;
  uint32_t backlog_units = 2;       // units a node may be given beyond those it has: their data is
                                    // brought in while others run
  uint32_t considered_nodes = 128;  // that one decision looks at, see shortlist.h
  uint32_t recorded_nodes = 16;     // of them, written with each decision
  uint32_t replicas = 1;            // nodes that are to keep a dataset, where its user does not say
  int64_t replica_grace_ms = 600'000;  // for a node that had a copy to come back with it
  uint32_t max_attempts = 3;  // of a task whose node was lost or whose data could not be served
  int64_t decision_deadline_us = 5'000;
  bool hold_tasks = true;  // a policy may keep tasks back for a node that is full
  RewardSettings reward;
  QueueLimits queue_limits;
  // The gang policies that there are, and the one that decides first; outlives this.
  const gang::PlacerModules* gang_policies = &gang::hosted_placers();
  std::string gang_policy = gang::kGangHeuristic;
  std::string gang_weights;                     // file of those that learned
  PolicyMode gang_mode = PolicyMode::kEnforce;  // of a policy that was never given another one
  bool elastic_guard = true;                    // over the allocator of cores
  std::string elastic_allocator = "quality";  // of elastic tasks; see policies/quality/allocator.h
  int64_t elastic_period_ms = 5000;           // between its decisions
  int64_t elastic_horizon_ms = 600'000;       // in which a gang's restart with more ranks must pay
  double gang_estimate_h = 1;                 // of gangs that say nothing
  gang::Costs gang_costs{};                   // where nothing was measured
  std::string share_policy = "share";         // see policies/sharing/live/share_policy.h
  std::shared_ptr<const sharing::JobPredictor> share_predictor;  // null: model cards tell nothing
  int64_t share_period_ms = 2000;        // between looks at what jobs on shared units have
  int64_t preemption_grace_ms = 10'000;  // for a checkpoint before a job gives its share up
  uint32_t quarantine_failures = 5;      // of a unit within so long take it out of service; 0: off
  int64_t quarantine_window_ms = 24 * 3'600'000;
  uint32_t checkpoints = 3;  // of a job that are kept while it goes on, see checkpoints.h
  int64_t gang_patience_ms =
      30'000;  // then others behind a gang wait with it, so that it gets room
};

// Of a node's row on disk, among the writes that are owed.
inline std::string node_key(const std::string& node) {
  return "node " + node;
}

struct ClusterState {
  CoreSettings settings;
  const Clock& clock;
  Store& store;
  OwedWrites owed{store};
  Registry registry;
  Catalog catalog;
  TaskBook tasks;
  UnitBook units;
  GangBook gangs;
  HeldTasks held;
  EndingAttempts ending;
  Scoreboard scores;
  // Removed datasets that a node may still hold, by node: they must go before a new one of that
  // name.
  std::map<std::string, std::set<std::string>> owed_drops;
  std::set<std::string> leaving_nodes;   // whose removal is on its way to the disk
  std::multiset<std::string> coming_to;  // nodes that tasks on their way to the disk are bound to
  uint64_t last_task = 0;
  uint64_t last_submission = 0;
  QueueOrder order;
  int64_t reckoning = 0;            // how often all places were reckoned; in the order of arrival 0
  int64_t reckoned_ns = INT64_MIN;  // boot time, the last time
  QueueLoad load;                   // tasks in the book, and those on their way there
  uint32_t attempts_above = 0;      // of tasks that were restored from a backup, see next_attempt()
  uint64_t restored_up_to = 0;      // tasks up to this one were restored from a backup
  int64_t adopt_until_ns = 0;       // boot time; until then nothing is dispatched, see adopting()
  int64_t old_leases_end_ns = 0;    // boot time; 0: those of before last no longer than today's
  int64_t joined_by_ns = 0;         // boot time; who was there before a restart has joined by then
  bool node_joins = false;          // and has not told all that it has on disk and in memory
  std::set<uint64_t> refused_ends;  // tasks whose end the disk did not take; it is tried again
  std::multiset<uint64_t> saving;   // tasks with a checkpoint that is on its way to the disk
  // Before a time of a task is taken from the wall clock: if somebody set that, those that were
  // taken before are moved first.
  std::function<void()> heed_clock = [] {};
  // Of tasks that are new in the book.
  std::function<void(const std::vector<uint64_t>& tasks)> heed_clock_of = [](const auto&) {};

  double place_s(const Task& task) const {
    constexpr double kFirst_s = 1e10;  // more than any time
    return order.place_s(settings.service_order, task, clock.wall_ms()) -
           kFirst_s * task.spec.priority;
  }
  // After a restore, nodes may run what the backup does not know of: for as long as an old lease
  // may last, what they hold is adopted, and nothing else is begun.
  bool adopting() const { return clock.boot_ns() < adopt_until_ns; }
  bool may_place() const { return !adopting() && !node_joins; }
  // Not one that was given after the backup was taken.
  uint32_t next_attempt(const Task& task) const {
    return (restores(task) ? std::max(task.attempt, attempts_above) : task.attempt) + 1;
  }
  uint32_t max_attempts(const Task& task) const {
    const bool is_above = restores(task) && task.attempt > attempts_above;
    // A gang's tries are counted as the gang's.
    if (task.rank) return UINT32_MAX;
    return settings.max_attempts + (is_above ? attempts_above : 0);
  }
  bool restores(const Task& task) const { return task.id <= restored_up_to; }
  // What keeps the task from being placed now; empty when nothing does.
  std::string blocked_by(const Task& task) const;
  // Before the queue is looked at.
  void keep_order();
  // For the next coordinator, which waits so long for nodes that this one has granted leases.
  void note_lease();
  // Places of another reckoning cannot be compared with those that nodes were told.
  void begin_reckoning(int64_t number);
  void units_changed() {
    scores.units_changed(clock.boot_ns(), registry.summary().busy_units,
                         registry.summary().total_units);
  }
  // The node has nothing of the dataset any more: no task is kept back for that.
  void data_gone(const Catalog::Entry& dataset, const NodeRecord& node) {
    held.wake_if(node.slot, [&](uint64_t task) { return dataset.users.contains(task); });
  }
};

// Fills the state from the store after a start: tasks in flight stay with their nodes, which get
// one lease's time to come back.
Status restore(ClusterState& state);

}  // namespace tierpilot

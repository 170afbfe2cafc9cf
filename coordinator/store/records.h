// How the model's values stand in the store's tables. Called inside a transaction, or to read.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/job_point.h"
#include "coordinator/model.h"
#include "coordinator/records/past_runs.h"
#include "coordinator/store/db.h"
#include "model/checkpoint_name.h"
#include "model/node_order.h"
#include "policies/sharing/interference/pair_effects.h"

namespace tierpilot::records {

// Of jobs beside each other on units of cores and on GPUs; of nodes, and of kinds of GPUs, and the
// models that ran there.
enum class PairKind { kOnCores, kOnGpus, kRuns, kGpuRuns };
struct MeasuredPair {
  std::string first, second;
  sharing::PairMeasured measured;
};

// Makes the tables of a new store; refuses one written by a newer version.
Status create_tables(Db& db);

Status put_task(Db& db, const Task& task);
// Everything but what the task was submitted with, which never changes.
Status update_task(Db& db, const Task& task);
// Without its reward, which is measured later.
Status put_decision(Db& db, const DecisionRecord& decision);
Status put_reward(Db& db, AttemptId attempt, const RewardRecord& reward);
Status put_dataset(Db& db, const Dataset& dataset);
Status put_reads(Db& db, const std::string& dataset, uint64_t reads);
Status remove_dataset(Db& db, const std::string& name);
// For who builds on these versions, by dataset. kConflict: one is not written down, as the write of
// what made it failed.
Status need_versions(Db& db, const std::map<std::string, uint64_t>& versions);
// For who runs after these tasks. kConflict: the end of one is not written down, as its write
// failed.
Status need_ends(Db& db, const std::vector<uint64_t>& tasks);
Status put_receipt(Db& db, const RequestKey& request, const SubmitReceipt& receipt);
Status put_setting(Db& db, const std::string& key, int64_t value);

struct TaskFilter {
  std::optional<TaskState> state;
  uint64_t submission = 0;  // 0: any
  uint64_t after = 0;       // ids above this one, rising
  uint32_t limit = 500;
  // Of what they were submitted with; the one that exceeds it is the last.
  size_t most_bytes = std::numeric_limits<size_t>::max();
};

struct HistoryFilter {
  int64_t from_ms = 0;  // submitted within [from_ms, until_ms)
  int64_t until_ms = 0;
  uint64_t after = 0;
  uint32_t limit = 500;
};
struct HistoryPage {
  std::vector<Task> tasks;
  uint64_t next = 0;  // the `after` of the next page; 0: there is none
};

Result<std::optional<Task>> task(Db& db, uint64_t id);
Result<std::vector<Task>> tasks(Db& db, const TaskFilter& filter);
// A page looks at a bounded number of rows: it may be empty and have a next one. It needs no index
// on the time, which would cost every submit.
Result<HistoryPage> history(Db& db, const HistoryFilter& filter);
// All that have not ended, by rising id.
Result<std::vector<Task>> active_tasks(Db& db);
Result<uint64_t> last_task_id(Db& db);
Result<uint64_t> last_submission(Db& db);
// The last kMostDecisions of them: a task that its nodes refuse may have been placed for months.
inline constexpr int kMostDecisions = 100;
Result<std::vector<DecisionRecord>> decisions(Db& db, uint64_t task_id);
Result<std::vector<Dataset>> datasets(Db& db);
Result<std::optional<SubmitReceipt>> receipt(Db& db, const RequestKey& request);
// What must outlive a restart of a node: its network output, and which instance may hold tasks.
struct NodeMemory {
  enum class Away { kNo, kStopped, kLost };
  uint32_t slot = 0;
  uint64_t instance = 0;
  Away away = Away::kNo;  // when last heard of
};
Status put_node(Db& db, const std::string& node, const NodeMemory& memory);
Result<std::map<std::string, NodeMemory>> nodes(Db& db);
// A node that is gone for good, with what was ordered of it.
Status remove_node(Db& db, const std::string& node);
// None removes it.
Status put_node_order(Db& db, const std::string& node, const NodeOrder& order);
Result<std::map<std::string, NodeOrder>> node_orders(Db& db);
// The last ten thousand of all nodes are kept.
Status put_node_event(Db& db, const NodeEvent& event);
// Newest first.
Result<std::vector<NodeEvent>> node_events(Db& db, const std::string& node, uint32_t limit);
// Datasets that a node must drop when it joins, as (node, dataset).
Status put_owed_drop(Db& db, const std::string& node, const std::string& dataset);
Status clear_owed_drop(Db& db, const std::string& node, const std::string& dataset);
Status clear_owed_drops_of(Db& db, const std::string& dataset);
Result<std::vector<std::pair<std::string, std::string>>> owed_drops(Db& db);
Status put_policy_standing(Db& db, const PolicyStanding& standing);
Result<std::vector<PolicyStanding>> policy_standings(Db& db);
// The last thousand of all policies are kept.
Status put_policy_event(Db& db, const PolicyEvent& event);
// Newest first; an empty name: of all policies.
Result<std::vector<PolicyEvent>> policy_events(Db& db, const std::string& policy, uint32_t limit);
// Of a task that is there; see job_points_text().
Status put_job_progress(Db& db, uint64_t task, const std::string& points);
// Empty: it said nothing.
Result<std::vector<JobPoint>> job_progress(Db& db, uint64_t task);
// The texts of all tasks that have not ended and said something.
Result<std::vector<std::pair<uint64_t, std::string>>> active_job_progress(Db& db);
// The newest that the task, if it is there, was told outlives a node.
Status put_safe_checkpoint(Db& db, const CheckpointName& name);
// Of all tasks that are remembered.
Result<std::vector<CheckpointName>> safe_checkpoints(Db& db);
// See past_runs_text().
Status put_past_runs(Db& db, const PastRunsId& id, const std::string& runs);
Status remove_past_runs(Db& db, const PastRunsId& id);
Result<PastRunsByName> past_runs(Db& db);
// Of each kind those that were measured last stay, as many as are remembered.
Status put_pairs(Db& db, PairKind kind, const std::vector<MeasuredPair>& pairs, int64_t now_ms);
Result<std::vector<MeasuredPair>> pairs(Db& db, PairKind kind);  // the oldest first
Result<int64_t> setting(Db& db, const std::string& key, int64_t fallback);

}  // namespace tierpilot::records

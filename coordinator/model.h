// The coordinator's plain values: what is stored, shown and decided on. No RPC types, no SQL.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/content_digest.h"
#include "model/attempt.h"
#include "model/policy_standing.h"
#include "model/task_end.h"
#include "model/task_spec.h"
#include "model/task_state.h"
#include "model/trial_end.h"
#include "policies/learning/guard.h"

namespace tierpilot {

// A measured figure, or the reason why there is none.
struct Figure {
  std::optional<double> value;
  std::string unavailable;
};

struct DatasetVersion {
  std::string dataset;
  uint64_t version = 0;
  uint64_t bytes = 0;
  ContentDigest digest{};
};

struct TaskExit {
  TaskEnd how = TaskEnd::kLost;
  int32_t code = 0;
  std::string reason;
  uint64_t cpu_user_ns = 0;
  uint64_t cpu_system_ns = 0;
  uint64_t max_resident_bytes = 0;
  uint64_t wall_ns = 0;
  Figure io_read_bytes;
  Figure io_write_bytes;
  std::vector<DatasetVersion> written;
  std::string memory_tier;                             // what became of the wish for one
  std::vector<std::pair<std::string, Figure>> memory;  // what the kernel did with it
  // It did not start, or was lost, for a reason of the node.
  bool node_fault = false;
  // Not on disk: how long before it was told it was, and the size of a dataset that it wrote and
  // that there was no room for; 0: that was not the cause.
  uint64_t ago_ms = 0, no_room_bytes = 0;
};

struct ServedData {
  uint64_t local_bytes = 0;
  uint64_t promoted_bytes = 0;
  uint64_t fetched_bytes = 0;
  uint64_t evicted_bytes = 0;
  uint64_t evicted_written_bytes = 0;
  uint64_t latency_ns = 0;
  Figure evict_gb_per_s;
  uint64_t reference_ns = 0;
  uint32_t running_units = 0;
  // Of latency_ns: until work on it began, making room, transferring promoted and fetched bytes.
  uint64_t queued_ns = 0;
  uint64_t evict_ns = 0;
  uint64_t promote_ns = 0;
  uint64_t fetch_ns = 0;
};

// Of a task that is a rank.
struct RankOf {
  uint64_t gang = 0;  // the task that it is a rank of
  uint32_t rank = 0;
  int32_t pid = 0;                  // 0: not started
  std::vector<uint32_t> cpu_units;  // of its node, once it has started
  std::vector<std::string> gpus;    // by UUID, from its assignment on
};

// Of a shared unit of its node; of the last attempt, where none is under way.
struct UnitShare {
  uint32_t unit = 0;
  std::string gpu{};          // UUID of the unit; empty: it is of cores
  uint32_t milli = 0;         // 0: not given yet
  uint64_t memory_bytes = 0;  // 0: not counted
  uint32_t preemptions = 0;   // of the task, so far
  // What was predicted of the attempt, and by what; of its run 0: not known.
  std::string predicted_by{};
  uint32_t predicted_milli = 0;
  double predicted_s = 0;
  double used_milli = 0;  // in the mean, as measured; 0: not yet
  TrialEnd trial_end{};   // of its promise
};

struct Task {
  uint64_t id = 0;
  uint64_t submission = 0;
  TaskState state = TaskState::kQueued;
  std::string reason;
  std::string node;
  uint32_t attempt = 0;
  uint32_t forgiven = 0;  // of its attempts, those that ended for a reason of the node
  int64_t submitted_ms = 0;
  int64_t started_ms = 0;
  int64_t finished_ms = 0;
  std::string user;
  std::string policy;
  bool cancel_asked = false;
  TaskSpec spec;
  std::optional<TaskExit> exit;
  std::optional<ServedData> served;
  std::optional<RankOf> rank;
  std::optional<UnitShare> share;
  std::optional<ClockOffset>
      times_by;           // of one that is due: as the clock stood by which its times are
  uint32_t restarts = 0;  // of a gang, after failures of its own
  uint32_t faults = 0;  // starts and services of data that nodes failed at, since the last restart
  // What the current attempt was given; not stored: after a restart a change goes unnoticed.
  std::map<std::string, uint64_t> data_versions;
  // What the current attempt is counted with at its node; not stored either.
  double counted_operations = 0;
  uint64_t counted_fetch_bytes = 0;
  // It runs after these, whose ends were not on disk when it came into the book; not stored.
  std::vector<uint64_t> parents;
  // In the queue, see policies/scheduling/service_order.h; not stored, as what it is reckoned with
  // is not. Once the task is in a TaskBook, only that changes it.
  double place_s = 0;
  // Since when nothing but room is missing, where that is later than the submit; not stored.
  int64_t ready_ms = 0;

  // Its processes have ended well, and its end counts once what it wrote is on enough nodes.
  bool is_copied() const { return state == TaskState::kRunning && has_ended_well(); }
  bool has_ended_well() const { return exit && exit->how == TaskEnd::kExited && exit->code == 0; }
};

struct CandidateRecord {
  std::string node;
  bool eligible = false;
  std::optional<double> q;
  uint64_t free_fast_bytes = 0;
  uint64_t held_fast_bytes = 0;
  uint64_t held_slow_bytes = 0;
  uint32_t assigned_units = 0;
  uint32_t units = 0;
  uint32_t ranks = 0;  // of the gang that is placed, that go there
};

// A unit that was looked at for a task with a share, as it was then.
struct UnitLook {
  std::string node;
  uint32_t unit = 0;
  std::string gpu;  // empty: a group of cores
  uint32_t free_milli = 0;
  uint64_t free_memory_bytes = 0;
  std::vector<uint64_t> tasks;  // that have shares of it
  std::string refused;          // why the task could not start there; empty: it could
};

struct RewardRecord {
  std::optional<double> reward;  // empty until the data has been served
  double utilisation = 0;
  double latency_term = 0;
  double penalty_term = 0;
  uint64_t latency_ns = 0;
  uint64_t reference_ns = 0;
  uint64_t evicted_bytes = 0;
  Figure evict_gb_per_s;
};

// What a decision about a gang is held against.
struct GangDecision {
  double expected_h = 0;    // until its end, where it was placed
  std::string heuristic{};  // nodes and ranks that the heuristic would have taken
  double heuristic_h = 0;   // until its end, there
  std::string standing{};   // of the policy, and why; empty: it answers to no guard
};

// One decision, written down with its reasons.
struct DecisionRecord {
  AttemptId attempt;
  std::string policy;
  std::string node;
  bool explored = false;
  std::string fallback;
  std::optional<PolicyMode> mode;  // of the policy; empty: it does not learn
  std::optional<Arm> arm;          // who was to decide; the same
  std::string proposed;  // the node that the policy wanted, where it was asked and did not get it
  std::string reason;
  int64_t decide_ns = 0;
  uint64_t weights_version = 0;
  int64_t at_ms = 0;
  double utilisation = 0;
  double operations = 0;
  uint64_t data_bytes = 0;
  bool writes = false;
  std::string kept_back_for;  // the node that the task had to wait for last; empty: it had not
  int64_t kept_back_ms = 0;
  uint32_t considered =
      0;  // nodes that the policy was shown; with a share, units that were looked at
  uint32_t eligible = 0;                    // of them, those that could take the task
  std::vector<CandidateRecord> candidates;  // the chosen one, and the best of the others
  std::vector<UnitLook> unit_looks{};  // of a task with a share: the chosen unit, and some others
  std::vector<float> encoded;
  RewardRecord reward;
  std::optional<GangDecision> gang{};  // of a gang
};

// What is kept of a learned policy's guard.
struct PolicyStanding {
  std::string policy;
  GuardMemory memory;
};

// Something about a policy that an operator should know of.
struct PolicyEvent {
  int64_t at_ms = 0;  // wall time
  std::string policy;
  std::string what;
  std::string why;
};

// Something about a node that an operator should know of.
struct NodeEvent {
  int64_t at_ms = 0;  // wall time
  std::string node;
  std::string what;
  std::string why;
};

struct Dataset {
  std::string name;
  uint64_t bytes = 0;
  uint64_t version = 1;
  std::string home;
  std::string origin;
  std::string request_id;
  uint64_t reads = 0;
  uint64_t writes = 0;
  ContentDigest digest{};  // of the current version; unknown until its home has told it
  uint32_t replicas = 1;   // nodes that are to keep it

  DatasetVersion current() const { return {name, version, bytes, digest}; }
};

struct ReplicaState {
  uint64_t version = 0;
  uint64_t bytes = 0;
  bool in_fast = false;
  bool in_slow = false;
  bool home = false;  // it is kept there until it is told otherwise
  ContentDigest digest{};
  bool damaged = false;  // a copy was found with other bytes, and went
};

inline constexpr size_t kMaxRequestIdBytes = 128;

// By which a submit that is repeated is known: an id is its user's.
struct RequestKey {
  std::string user;
  std::string id;  // as the client drew it

  auto operator<=>(const RequestKey&) const = default;
};

// What a submit was answered, so that the same request id gets the same answer.
struct SubmitReceipt {
  uint64_t submission = 0;
  uint64_t first_task = 0;
  uint64_t task_count = 0;
  std::string digest;  // of the request's content
};

}  // namespace tierpilot

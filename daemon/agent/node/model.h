// The agent's plain values: what an assignment asks for and what is reported about it. They mirror
// rpc/node.capnp without Cap'n Proto, so that the lifecycle is tested without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/memory_wish.h"
#include "base/result.h"
#include "daemon/exec/task.h"
#include "daemon/memory/pool/types.h"
#include "model/attempt.h"
#include "model/rank.h"

namespace tierpilot::agent {

// Of one of the node's units that tasks share.
struct UnitPart {
  uint32_t unit = 0;
  uint32_t milli = 0;         // thousandths of it
  uint64_t memory_bytes = 0;  // of a GPU's; 0: not limited
  uint32_t most_milli = 0;    // that it is predicted to use at most; 0: not said
};

struct Assignment {
  AttemptId attempt;
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;
  uint32_t units = 1;
  uint32_t max_units = 0;           // not 0: its share may change while it runs
  uint64_t memory_limit_bytes = 0;  // 0: none
  uint64_t swap_room_bytes = 0;     // of the node's tiers for swapping
  int64_t time_limit_ms = 0;        // 0: none
  std::vector<ServeItem> datasets;
  std::string checkpoint;  // the one of the datasets that it begins from; empty: from nothing
  std::string name;
  std::string submitter;  // an account, as the coordinator knows it; empty: not told
  MemoryWish memory_wish;
  // Of the tasks whose data is here the one with the least reckoning begins first, among equal ones
  // that with the least place_s (not finite: as 0).
  int64_t reckoning = 0;
  double place_s = 0;
  std::optional<RankAssignment> rank;
  std::optional<UnitPart> part;  // in place of units of its own
};

struct ServedData {
  Served pool;
  uint64_t latency_ns = 0;  // from receiving the assignment to the last byte
  Result<double> evict_gb_per_s = fail(ErrorCode::kUnavailable, "not measured");
  uint64_t reference_ns = 0;  // the fast tier's own time for as many bytes; 0: not measured
  uint32_t running_units = 0;
};

// A figure with its unit in its name, or why there is none.
struct MetricValue {
  std::string name;
  Result<double> value;
};

struct ExitReport {
  TaskEnd how = TaskEnd::kLost;
  std::string reason;
  bool node_fault = false;             // could_not_start, lost: for a reason of this node's
  uint64_t no_room_bytes = 0;          // data_failed: of a dataset that it wrote
  std::optional<ProcessExit> process;  // nothing: it was never launched
  std::vector<ReplicaChange> written;
  std::string memory_tier;          // what its wish for memory came to; empty: it had none
  std::vector<MetricValue> memory;  // what the kernel did with its memory

  bool success() const { return how == TaskEnd::kExited && process && process->exit_code == 0; }
};

struct ServedEvent {
  AttemptId attempt;
  ServedData data;
};
struct StartedEvent {
  AttemptId attempt;
  int32_t pid = 0;
  std::vector<uint32_t> cpu_units{};
};
struct ExitedEvent {
  AttemptId attempt;
  ExitReport exit;
  int64_t at_ns = 0;  // of Clock::boot_ns(); 0: before this daemon began
};
// What a checkpoint cost its job; see node.capnp.
struct CheckpointedEvent {
  AttemptId attempt;
  std::string checkpoint;
  uint64_t stall_ns = 0;
  uint64_t copy_ns = 0;
};
// A unit failed under whatever ran on it.
struct UnitFaultEvent {
  std::string unit;  // without its node: gpu/UUID, cpu/NUMBER
  std::string kind;
  std::string detail;
};
using EventBody = std::variant<ReplicaChange, ServedEvent, StartedEvent, ExitedEvent,
                               CheckpointedEvent, UnitFaultEvent>;

struct Event {
  uint64_t sequence = 0;
  EventBody body;
};

}  // namespace tierpilot::agent

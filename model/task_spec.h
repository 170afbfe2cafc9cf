// What a task is submitted with. It never changes afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/resources.h"
#include "model/unit_id.h"

namespace tierpilot {

struct DatasetUse {
  std::string dataset;
  bool write = false;
};

// Of a task whose processes, its ranks, are placed, started and ended together. Each rank is a task
// of its own: it has the gang's command, units, memory and datasets.
struct GangSpec {
  uint32_t ranks = 0;  // 0: no gang
  Engine engine = Engine::kCpu;
  uint32_t gpus_per_rank = 0;
  uint32_t ranks_per_node_min = 0;  // 0: any
  uint32_t ranks_per_node_max = 0;  // 0: any
  int64_t estimate_ms = 0;          // of its run time without failures; 0: not said
  uint32_t max_restarts = 0;        // after failures of its own
  int64_t start_within_ms = 0;      // that all ranks run; 0: two minutes
  uint32_t max_ranks = 0;           // it may begin again with up to so many; 0: only with `ranks`

  uint32_t most_ranks() const { return max_ranks > ranks ? max_ranks : ranks; }
};

// Of a task that gets a part of a shared unit, see policies/sharing/share.h. Its memory there (of a
// GPU: the device's) is the task's `memory_bytes`; 0: as predicted.
struct ShareSpec {
  bool wanted = false;
  Engine engine = Engine::kCpu;
  uint32_t milli = 0;  // thousandths of the unit's compute; 0: as predicted
  bool latency_sensitive = false;
  int64_t promise_ms = 0;  // it is to be done so long after it was submitted; 0: no promise
  // It was not promised when the task was taken: that is decided once the task has shown whether it
  // can be kept. Of a submission: that this may be.
  bool promise_on_trial = false;
  int64_t estimate_ms = 0;  // of its run time on a unit of its own; 0: not said
  std::string model_card;   // JSON; empty: none

  bool operator==(const ShareSpec&) const = default;
};

// Of an elastic task: what is to get better as it trains, how much that counts, and by when.
struct TrainingGoal {
  double weight = 1;        // what it gains counts so many times
  std::string measure;      // of what it reports; empty: its loss
  bool rises = false;       // the more of the measure the better
  double goal = 0;          // of the measure, to be reached by the deadline
  int64_t deadline_ms = 0;  // after it was submitted; 0: none, and no goal

  bool operator==(const TrainingGoal&) const = default;
};

struct TaskSpec {
  std::string name;               // unique within its submission; others name it in `after`
  std::vector<std::string> argv;  // any bytes but NUL
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<DatasetUse> datasets;
  uint32_t units = 1;         // of its node's CPUs
  uint32_t max_units = 0;     // elastic: up to so many while it runs; 0: only `units`
  uint64_t memory_bytes = 0;  // 0: no limit asked for
  // Of its node's slower memory and directories, for tensors that its program swaps out.
  uint64_t swap_room_bytes = 0;
  double float_operations = 0;
  double int_operations = 0;
  int64_t time_limit_ms = 0;  // 0: none
  std::vector<std::string> after;
  std::string node;         // empty: the policy chooses
  std::string memory_tier;  // see base/memory_wish.h
  int32_t priority = 0;     // the higher goes first
  GangSpec gang;
  ShareSpec share;
  TrainingGoal training_goal;

  // Something has to be reached by a time after it was submitted.
  bool is_due() const { return share.promise_ms > 0 || training_goal.deadline_ms > 0; }
  bool is_gang() const { return gang.ranks > 0; }
  bool is_elastic() const { return max_units > 0; }
  bool is_shared() const { return share.wanted; }
  bool has_gpu_share() const { return share.wanted && share.engine == Engine::kGpu; }
  // Of its node's, not of a GPU's.
  uint64_t node_memory_bytes() const { return has_gpu_share() ? 0 : memory_bytes; }
  // Of the node that runs it, or a rank of it, when its data is so large.
  Resources needs(uint64_t data_bytes) const {
    return {units, gang.gpus_per_rank, node_memory_bytes(), data_bytes, swap_room_bytes};
  }
  // That nobody else has meanwhile.
  uint32_t own_units() const { return is_shared() ? 0 : units; }
};

}  // namespace tierpilot

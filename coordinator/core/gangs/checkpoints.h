// Checkpoints of jobs: datasets of theirs, one for each, kept on a second node where there is one.
// Nodes report them as they report any replica, and their names tell whose they are; a try that
// follows begins from the newest that can be had. Event loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/data/dataset_admin.h"
#include "coordinator/core/gangs/told_safe.h"
#include "model/checkpoint_name.h"

namespace tierpilot {

// What one cost its job, as its node measured.
struct CheckpointCost {
  uint64_t stall_ns = 0;  // that the job waited
  uint64_t copy_ns = 0;   // of that, until the node had it
};

// Of all that a job has taken since the coordinator started.
struct CheckpointTotals {
  uint64_t taken = 0;
  uint64_t stall_ns = 0;
  double interval_s = 0;  // as the job was told; 0: it was not
  double failures_per_h = 0;
};

struct ShownCheckpoint {
  CheckpointName name;
  uint64_t bytes = 0;
  std::vector<std::string> nodes;  // that keep it
  uint32_t wanted = 0;             // nodes
  Figure stall_ms;
  Figure copy_ms;

  bool is_safe() const { return nodes.size() >= wanted; }
};

class Checkpoints {
 public:
  Checkpoints(ClusterState& state, DatasetAdmin& datasets)
      : state_(state), datasets_(datasets), told_(state) {}

  // Before anything else: reads what jobs were told before a restart.
  Status begin() { return told_.begin(); }
  // A node holds something of this name. A checkpoint of a job that goes on is written down; of one
  // that is over, it goes, once that end is on disk.
  void found(const std::string& node, const std::string& dataset, const ReplicaState& replica);
  void measured(const std::string& node, AttemptId attempt, const std::string& checkpoint,
                const CheckpointCost& cost);
  // Several times a second; once a second, tells jobs what has become safe and removes what is no
  // longer needed.
  void tick();
  // Asks a job for one; nothing happens if it takes none.
  void ask(uint64_t task, const std::string& reason);
  // Of all jobs that run on the node.
  void ask_all_on(const std::string& node, const std::string& reason);

  // Newest first.
  std::vector<ShownCheckpoint> of(uint64_t task) const;
  // Null: it has taken none.
  const CheckpointTotals* totals(uint64_t task) const;

 private:
  struct Job {
    CheckpointTotals totals;
    std::map<CheckpointName, CheckpointCost> costs;
  };
  static constexpr size_t kMostJobs = 2000;  // whose costs are remembered

  void publish(Dataset dataset, const CheckpointName& name);
  void tell(uint64_t task, const JobAdvice& advice);
  void tell_safe(const CheckpointName& name);
  void look_at(uint64_t task, const std::vector<CheckpointName>& kept);
  double failures_per_h(const Task& task) const;

  ClusterState& state_;
  DatasetAdmin& datasets_;
  ToldSafe told_;
  std::set<std::string> publishing_;  // see also ClusterState::saving
  // Told of while the end of their jobs was not on disk, or not written down as the disk failed.
  std::set<std::string> left_;
  std::map<uint64_t, Job> jobs_;  // by task
  int64_t next_look_ns_ = 0;
};

}  // namespace tierpilot

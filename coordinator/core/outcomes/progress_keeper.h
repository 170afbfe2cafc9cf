// Series of what jobs said, in memory while they are wanted often, and in the store, so that they
// outlive the coordinator and are forgotten with their task. Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/outcomes/progress_book.h"

namespace tierpilot {

class ProgressKeeper {
 public:
  // A coordinator that is killed loses what a job said in so long, and nothing of one that ended
  // before a write.
  static constexpr int64_t kEvery_ns = 60'000'000'000;
  static constexpr size_t kMostWrites = 32;  // of a tick

  explicit ProgressKeeper(ClusterState& state) : state_(state) {}

  // After restore(): gives each point of a task that has not ended to `known`, oldest first.
  Status begin(const std::function<void(const Task&, const JobPoint&)>& known);
  void add(uint64_t task, JobPoint point);
  // Its series is written at the next tick.
  void ended(uint64_t task);
  // Oldest first; the newest is always in it.
  std::vector<JobPoint> of(uint64_t task) const;
  // Several times a second.
  void tick();
  // All that was not written yet.
  void flush();

 private:
  void recall(uint64_t task);
  void write(uint64_t task);
  void written(uint64_t task, const Status& status);

  ClusterState& state_;
  ProgressBook book_;
  std::map<uint64_t, int64_t> due_ns_;  // by task, of those with points that are not in the store
};

}  // namespace tierpilot

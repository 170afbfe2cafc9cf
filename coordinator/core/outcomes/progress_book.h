// What running jobs said of themselves, as series that are thinned as they grow. Event loop thread
// only.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "base/thinned_series.h"
#include "coordinator/job_point.h"

namespace tierpilot {

class ProgressBook {
 public:
  static constexpr size_t kMostPoints = 256;  // of a task
  static constexpr size_t kMostTasks = 2000;  // who spoke first goes first

  void add(uint64_t task, JobPoint point);
  // Oldest first; the newest is always in it.
  const std::vector<JobPoint>& of(uint64_t task) const;
  bool has(uint64_t task) const { return series_.contains(task); }
  void forget(uint64_t task);

 private:
  std::map<uint64_t, ThinnedSeries<JobPoint>> series_;
  std::deque<uint64_t> by_age_;
};

}  // namespace tierpilot

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
  // Of a task; of many each has half as many, and once it would be fewer than the fewest, who spoke
  // first goes.
  static constexpr size_t kMostPoints = 256, kFewestPoints = 8;
  static constexpr size_t kMostOfAll = 512'000;

  void add(uint64_t task, JobPoint point);
  // Oldest first; the newest is always in it.
  const std::vector<JobPoint>& of(uint64_t task) const;
  bool has(uint64_t task) const { return series_.contains(task); }
  void forget(uint64_t task);

 private:
  void bound();

  std::map<uint64_t, ThinnedSeries<JobPoint>> series_;
  std::deque<uint64_t> by_age_;
  size_t each_ = kMostPoints;
};

}  // namespace tierpilot

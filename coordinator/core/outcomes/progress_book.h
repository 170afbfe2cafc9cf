// What running jobs said of themselves, as series that are thinned as they grow. In memory only: it
// is for whoever watches. Event loop thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/thinned_series.h"
#include "coordinator/model.h"

namespace tierpilot {

struct JobPoint {
  uint32_t attempt = 0;
  int64_t at_ms = 0;  // wall time of the node
  uint64_t iteration = 0;
  uint64_t iterations = 0;  // of how many; 0: not said
  uint64_t samples = 0;
  Figure loss;
  std::vector<std::pair<std::string, Figure>> measures;
  uint64_t cpu_ns = 0;       // of all its processes; 0: not known
  uint32_t milli_units = 0;  // of an elastic task or one with a share: what it might use

  uint64_t waited_ns = 0;  // for a CPU; where the job says nothing

  // Of one with a share the node tells what it used also where the job tells nothing.
  bool says_something() const {
    return iteration > 0 || iterations > 0 || samples > 0 || loss.value || !measures.empty();
  }
};

class ProgressBook {
 public:
  static constexpr size_t kMostPoints = 256;  // of a task
  static constexpr size_t kMostTasks = 2000;  // those that said something last

  void add(uint64_t task, JobPoint point);
  // Oldest first; the newest is always in it.
  const std::vector<JobPoint>& of(uint64_t task) const;

 private:
  std::map<uint64_t, ThinnedSeries<JobPoint>> series_;
  std::deque<uint64_t> by_age_;
};

}  // namespace tierpilot

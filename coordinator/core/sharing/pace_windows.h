// How many iterations a job does per second of compute that it uses, window by window.
#pragma once

#include <cstdint>
#include <optional>

#include "coordinator/job_point.h"

namespace tierpilot {

class PaceWindows {
 public:
  // `tells_use`: the job's own reports tell what it used, of cores. Else only those of its node do,
  // of a GPU.
  explicit PaceWindows(bool tells_use) : tells_use_(tells_use) {}

  // A pace: a window has ended. Nothing: it goes on, or iterations went back.
  std::optional<double> add(double now_s, const JobPoint& report);
  // What was begun does not count.
  void restart() { from_s_.reset(); }

 private:
  static constexpr double kLeast_s = 1;

  bool tells_use_;
  uint64_t used_ns_ = 0;  // as the node told last
  std::optional<double> from_s_;
  uint64_t from_iteration_ = 0, from_used_ns_ = 0;
};

}  // namespace tierpilot

// What a running job said of itself at one moment.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
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

  uint64_t waited_ns = 0;          // for a CPU; where the job says nothing
  bool takes_checkpoints = false;  // it would, if it was asked to

  // Of one with a share the node tells what it used also where the job tells nothing.
  bool says_something() const {
    return iteration > 0 || iterations > 0 || samples > 0 || loss.value || !measures.empty();
  }
};

// One text for a series; kInvalid where it is not such a text.
std::string job_points_text(const std::vector<JobPoint>& points);
Result<std::vector<JobPoint>> parse_job_points(const std::string& text);

}  // namespace tierpilot

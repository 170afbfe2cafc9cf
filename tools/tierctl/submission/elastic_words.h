// An elastic task as users write it, on a command line or in a file of tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/task_spec.h"

namespace tierpilot::tierctl {

struct ElasticWords {
  std::string range;    // "MIN:MAX" units; empty: it is not elastic
  std::string measure;  // "NAME", "NAME:down", "NAME:up"; empty: its loss
  std::optional<double> weight, goal;
  int64_t deadline_ms = 0;  // 0: none
};

// kInvalid names what is wrong.
Status apply(const ElasticWords& words, TaskSpec& task);

}  // namespace tierpilot::tierctl

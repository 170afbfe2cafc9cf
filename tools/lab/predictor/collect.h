// tierctl predictor collect: this process becomes the Python program that measures trainings.
#pragma once

#include <string>

#include "tools/lab/command.h"

namespace tierpilot::lab {

struct CollectOptions {
  std::string out, architectures, python, device = "cpu";
  uint32_t configurations = 500;
  uint32_t grow_batches = 4096;  // on a GPU: at most so many times those of a core
  double seconds = 1;
  double time_limit_s = 300;  // of a training that does not answer
  uint64_t seed = 1;
  int cpu = -1;  // -1: the last that may be used
  bool pairs = false;
  bool overwrite = false;  // a table that is there
};

// Returns only where that program cannot be started: an ExitCode.
int collect(const Context& context, const CollectOptions& options);

}  // namespace tierpilot::lab

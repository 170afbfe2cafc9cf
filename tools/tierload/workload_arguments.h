// The options that `plan` and `run` share.
#pragma once

#include "tools/tierload/workload.h"

namespace CLI {
class App;
}

namespace tierpilot::tierload {

// Adds --tasks, --datasets, ... to `app`; they write into `options`, which outlives it.
void add_workload_options(CLI::App& app, WorkloadOptions& options);

}  // namespace tierpilot::tierload

// The options that demonstrations of training jobs have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/demo/training_stage.h"

namespace tierpilot::demo {

struct TrainingOptions {
  double scale = 1;  // of the jobs' iterations
  std::string json_file;
  TrainingScript script;
};

void add_training_options(CLI::App& app, TrainingOptions& options);
// Seconds between two arrivals; what it is now is the default.
void add_gap_option(CLI::App& app, double& gap_s);

}  // namespace tierpilot::demo

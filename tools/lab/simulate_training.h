// tierctl simulate --curves: training jobs that follow recorded curves, on the cores of a cluster
// that is only described.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/output/output.h"

namespace tierpilot::lab {

struct TrainingScene {
  std::string curves;   // CSV or a folder of them; empty: no training jobs are simulated
  std::string cluster;  // TOML; empty: that of the published experiment
  uint32_t jobs = 80;
  double gap_s = 15, period_s = 10;
  std::string work_s = "200:1600";      // "LEAST:MOST"
  std::vector<std::string> allocators;  // empty: all
  uint32_t seeds = 1;
};

// --curves and what belongs to it; the first is returned. Not `cluster`, `allocators` and `seeds`.
CLI::Option* add_training_scene(CLI::App& command, TrainingScene& scene);

// Returns an ExitCode.
int simulate_training(const Output& output, const TrainingScene& scene);

}  // namespace tierpilot::lab

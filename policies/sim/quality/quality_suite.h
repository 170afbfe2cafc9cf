// The published experiment and larger ones, every allocator on the same jobs.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sim/quality/training_run.h"

namespace tierpilot::sim {

// published: 80 jobs, 15 s apart in the mean, on 20 cores, decisions every 10 s; published-120s:
// every two minutes; jobs-160 on 40 cores; jobs-800 on 1,000.
const std::vector<TrainingCell>& quality_cells();

struct QualityOptions {
  std::vector<LossCurve> curves;  // empty: family_curves
  std::vector<double> trace_s;    // see draw_world()
  std::vector<TrainingCell> cells;
  std::vector<std::string> allocators;  // "fair" and "clairvoyant" are always among them
  uint32_t seeds = 10;
  uint64_t first_seed = 1001;
  uint32_t threads = 1;
  std::function<void(double)> progress;  // share that is done; by one thread at a time
};

// {"suite": "quality", "cells": [a row for each cell and allocator: means over the seeds, and
// beside fair's], "runs": [one for each seed]}; the same bytes for any number of threads.
Result<nlohmann::ordered_json> evaluate_quality(const QualityOptions& options);

}  // namespace tierpilot::sim

// The loss curves of real runs, as `tierctl quality predict` and simulations of training jobs read
// them.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "tools/demo/quality/training_log.h"

namespace tierpilot::demo {

// The columns family, run, iteration, loss and seconds (since the first report) of one job; of each
// kind of job a family. Jobs of equal seeds go the same way.
std::string curve_csv(const TrainingSeries& job, uint64_t seed);

// One file for each of them, KIND-SEED.csv, in a folder that is made.
Status write_curves(const std::filesystem::path& folder, const std::vector<TrainingSeries>& jobs,
                    uint64_t seed);

}  // namespace tierpilot::demo

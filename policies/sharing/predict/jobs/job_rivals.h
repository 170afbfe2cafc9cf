// What the default predictor of jobs is compared with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "policies/sharing/predict/jobs/training_table.h"
#include "policies/sharing/predict/regressor.h"

namespace tierpilot::sharing {

// The default first.
const std::vector<std::string>& predictor_names();

// `mlp-published` of a run time also sees the utilisation: measured where it trains, and where it
// is tested what the same perceptron says of it.
enum class Sees { kCard, kCardAndUtilisation };

// By name what each rival says of `test`, trained on `train` and its targets (logarithms). All but
// `mlp-published` and `flops-only` see what the default sees: figures of the card, the input
// pipeline, the iterations and the core's speed.
std::map<std::string, std::vector<double>> rivals_say(const std::vector<MeasuredTraining>& train,
                                                      const std::vector<double>& targets,
                                                      const std::vector<MeasuredTraining>& test,
                                                      Sees published_sees);

}  // namespace tierpilot::sharing

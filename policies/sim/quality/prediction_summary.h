// Trials of predictors as a value to show: by family, over all families, and run by run.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "policies/sim/quality/prediction_trial.h"

namespace tierpilot::sim {

// {"families": [{family, predictor, horizon, predictions, mean_error_percent, median_error_percent,
// p90_error_percent, coverage_percent, noise_floor_percent}], "combined": the same over families
// that each count alike, "curves": [...]}. Worst first: by mean error, within a horizon and
// predictor.
nlohmann::ordered_json prediction_json(const std::vector<LossCurve>& curves,
                                       const std::vector<std::string>& predictors,
                                       const std::vector<CurveTrial>& trials);

}  // namespace tierpilot::sim

// Runs a study: every contender on every fold of every split.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "base/result.h"
#include "policies/sharing/predict/jobs/installed.h"
#include "policies/sharing/predict/study.h"

namespace tierpilot::sharing {

struct Scored {
  std::string split, contender;
  double error = 0;  // by the study's measure, over all test rows
  size_t tested = 0;
  std::string worst_group;  // and its error
  double worst_error = 0;
};

// Of the default's placed quantile.
struct PlacedScore {
  std::string split;
  double under_predicted = 0;  // share of the test rows
  double mean_excess = 0;      // ln of placed over measured, the mean
};

struct StudyResult {
  std::vector<Scored> scores;
  std::vector<PlacedScore> placed;
};

StudyResult run_study(const Study& study);

// {"target", "measure", "goal", "rows", "scores": worst first, "placed"}
nlohmann::ordered_json study_json(const Study& study, const StudyResult& result);

// What `tierctl predictor evaluate` says of a file; which of the known formats it has, its header
// tells. With `train` that file (of the same format) trains and all of `data` is tested; without it
// of trainings also what is `installed` is.
Result<nlohmann::ordered_json> evaluate_predictors(const std::filesystem::path& data,
                                                   const std::filesystem::path& train,
                                                   const Progress& progress = {},
                                                   const ReadInstalled& installed = {});

}  // namespace tierpilot::sharing

// Predictors of training jobs on jobs of architectures that they were not trained on.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "policies/sharing/predict/jobs/installed.h"
#include "policies/sharing/predict/jobs/training_table.h"
#include "policies/sharing/predict/study.h"

namespace tierpilot::sharing {

// Studies of utilisation, memory and run time, as study_json() writes them, of cores and of GPUs,
// where the table tells of both: each architecture left out in turn, and those that are set aside.
// With `train` that table trains, and all of `table` is tested whose architecture is not in it.
// With `installed` that is tested first.
nlohmann::ordered_json study_trainings(const TrainingTable& table, const TrainingTable* train,
                                       const Progress& progress = {},
                                       const Installed* installed = nullptr);

// {"tested_rows", "known_rows": left out, as the predictor was trained on their like,
// "unlike_rows": of those tested, for which a cluster would take the user's share, "first_unlike"}
nlohmann::ordered_json installed_json(const TrainingTable& table,
                                      const std::shared_ptr<const JobModel>& model);

}  // namespace tierpilot::sharing

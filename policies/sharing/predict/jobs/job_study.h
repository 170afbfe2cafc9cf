// Predictors of training jobs on jobs of architectures that they were not trained on.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "policies/sharing/predict/jobs/training_table.h"
#include "policies/sharing/predict/study.h"

namespace tierpilot::sharing {

// Never used to choose between predictors or to tune one; reported apart, by what was trained on
// all others.
const std::set<std::string>& architectures_set_aside();

// Of cores and of GPUs, where the table tells of both.
// {"studies": of utilisation, memory and run time, as study_json() writes them, "prediction_us"}:
// each architecture left out in turn, and those that are set aside. With `train` that table trains,
// and all of `table` is tested whose architecture is not in it.
nlohmann::ordered_json study_trainings(const TrainingTable& table, const TrainingTable* train,
                                       const Progress& progress = {});

}  // namespace tierpilot::sharing

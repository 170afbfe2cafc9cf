// Predictors of trainings as files.
#pragma once

#include <string>

#include "base/result.h"
#include "policies/sharing/predict/jobs/job_model.h"

namespace tierpilot::lab {

// Empty: the one installed.
Result<sharing::JobModel> read_job_model_file(std::string path);

}  // namespace tierpilot::lab

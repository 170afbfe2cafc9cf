// Predictors of trainings as files.
#pragma once

#include <string>

#include "base/result.h"
#include "policies/sharing/predict/jobs/installed.h"
#include "policies/sharing/predict/jobs/job_model.h"

namespace tierpilot::lab {

// Empty: the one installed.
Result<sharing::JobModel> read_job_model_file(std::string path);

// The one installed, and those of the tables it was trained on that are there.
Result<sharing::Installed> read_installed();

}  // namespace tierpilot::lab

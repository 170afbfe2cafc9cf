// Predictors of trainings as files.
#pragma once

#include <string>

#include "base/result.h"
#include "policies/sharing/predict/jobs/job_model.h"

namespace tierpilot::lab {

// Empty: the one installed.
Result<sharing::JobModel> read_job_model_file(std::string path);
// At most so large, or it is an error.
Result<std::string> read_whole_file(const std::string& path, size_t most_bytes);

}  // namespace tierpilot::lab

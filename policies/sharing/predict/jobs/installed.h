// What is installed with Tierpilot, by which trainings that a user measured are foretold.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "policies/sharing/predict/jobs/training_table.h"

namespace tierpilot::sharing {

struct JobModel;

struct Installed {
  std::shared_ptr<const JobModel> model;
  std::vector<MeasuredTraining> tables;  // that it was trained on; none: they are not there
};
using ReadInstalled = std::function<Result<Installed>()>;

}  // namespace tierpilot::sharing

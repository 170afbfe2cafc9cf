// How measured trainings are split, so that nothing is tested whose like was trained on.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "policies/sharing/predict/jobs/installed.h"
#include "policies/sharing/predict/jobs/training_table.h"

namespace tierpilot::sharing {

struct Part {
  std::vector<MeasuredTraining> train, test;
  std::shared_ptr<const JobModel> model = {};  // trained elsewhere; then `train` is empty
};
using TrainingGroup = std::string (*)(const MeasuredTraining&);
struct Parts {
  std::string name;
  std::vector<Part> parts;
  TrainingGroup group;  // that errors are told of
};

// Never used to choose between predictors or to tune one; reported apart, by what was trained on
// all others.
const std::set<std::string>& architectures_set_aside();

// Each architecture in turn, but for those that are set aside; of GPUs each card, too. Rows are of
// one engine, and at least one, here and below.
std::vector<Parts> parts_of(const std::vector<MeasuredTraining>& rows);

// What has another architecture than the other file, or another card; and the former alone.
std::vector<Parts> parts_beside(const std::vector<MeasuredTraining>& rows,
                                const std::vector<MeasuredTraining>& train);

// The same by the installed predictor as it is, of what it was not trained on. Of what it was its
// tables tell without these architectures, where as many others are left.
std::vector<Parts> parts_by(const std::vector<MeasuredTraining>& rows, const Installed& installed);

// That the predictor was trained on the row's architecture, and of GPUs on its card; of neither
// where it does not tell what it was trained on.
bool is_new_to(const JobModel& model, const MeasuredTraining& row);
bool is_known_to(const JobModel& model, const MeasuredTraining& row);

}  // namespace tierpilot::sharing

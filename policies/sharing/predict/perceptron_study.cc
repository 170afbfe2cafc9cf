#include <array>
#include <cmath>
#include <numeric>

#include "policies/sharing/predict/perceptron_data.h"
#include "policies/sharing/predict/trimmed.h"

namespace tierpilot::sharing {
namespace {

// Of PerceptronData::rows: weights, kept and input in MiB, and a constant.
constexpr std::array<size_t, 4> kMemoryColumns{14, 15, 16, 27};
// How long a step computes against launches and loading, what bounds either, and the shape.
constexpr std::array<size_t, 13> kUseColumns{23, 21, 20, 4, 25, 8, 18, 10, 11, 5, 17, 6, 3};

std::vector<Contender> rivals() {
  return {{"constant", [] { return make_constant(); }},
          {"linear", [] { return make_ridge(1e-6); }},
          {"nearest-neighbour", [] { return make_nearest(1); }},
          {"boosted-trees", [] { return make_boosted_trees({}); }},
          {"flops-only", [] { return make_on_columns({0}, make_ridge(0)); }}};
}

// Bytes add up: weights, what the backward pass needs, the input, and what any program takes.
std::unique_ptr<Regressor> memory_default() {
  const CostSettings near_one{.start = 1, .penalty = 1e-6};
  return make_on_columns({kMemoryColumns.begin(), kMemoryColumns.end()}, make_cost_sum(near_one));
}

// Trees follow steps, a perceptron is smooth where a family has no rows; some runs were
// hardly on their card, and least squares would chase them.
std::unique_ptr<Regressor> utilisation_default() {
  std::vector<std::unique_ptr<Regressor>> members;
  members.push_back(make_boosted_trees({.trees = 250, .depth = 3, .rate = 0.06, .least_rows = 15}));
  members.push_back(make_perceptron({.hidden = {32, 16}, .epochs = 60}));
  return make_trimmed(
      make_on_columns({kUseColumns.begin(), kUseColumns.end()}, make_average(std::move(members))));
}

struct Measured {
  std::vector<size_t> rows;
  std::vector<double> values;
};

Measured measured(const std::vector<double>& values) {
  Measured found;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) {
      found.rows.push_back(i);
      found.values.push_back(std::log1p(values[i]));
    }
  return found;
}

std::vector<std::string> picked(const std::vector<std::string>& names,
                                const std::vector<size_t>& rows) {
  std::vector<std::string> picked;
  for (const auto row : rows) picked.push_back(names[row]);
  return picked;
}

// `values` picks what is to be predicted of a file.
Study make_study(std::string target, const PerceptronData& data, const PerceptronData* train,
                 std::vector<double> PerceptronData::*values) {
  const auto own = measured(data.*values);
  Study study{.target = std::move(target), .measure = Measure::kRootMeanSquareLog};
  for (const auto row : own.rows) study.rows.push_back(data.rows[row]);
  study.targets = own.values;
  study.calibration = {{"family", picked(data.families, own.rows)},
                       {"activation", picked(data.activations, own.rows)}};
  study.contenders = rivals();
  if (!train) {
    for (const auto& grouping : study.calibration)
      study.splits.push_back(leave_each_out(grouping.name, grouping.groups));
    std::erase_if(study.splits, [](const Split& split) { return split.folds.empty(); });
    return study;
  }
  const auto other = measured(train->*values);
  Fold fold{"all", {}, std::vector<size_t>(study.rows.size())};
  std::iota(fold.test.begin(), fold.test.end(), 0);
  for (size_t i = 0; i < other.rows.size(); ++i) {
    fold.train.push_back(study.rows.size());
    study.rows.push_back(train->rows[other.rows[i]]);
    study.targets.push_back(other.values[i]);
    study.calibration.front().groups.push_back(train->families[other.rows[i]]);
    study.calibration.back().groups.push_back(train->activations[other.rows[i]]);
  }
  if (!fold.train.empty() && !fold.test.empty()) study.splits.push_back({"files", {fold}});
  return study;
}

}  // namespace

std::vector<Study> perceptron_studies(const PerceptronData& data, const PerceptronData* train) {
  std::vector<Study> studies;
  auto memory = make_study("memory", data, train, &PerceptronData::memory_mib);
  memory.contenders.insert(memory.contenders.begin(), {"default", memory_default});
  studies.push_back(std::move(memory));
  auto utilisation = make_study("utilisation", data, train, &PerceptronData::utilisation_percent);
  utilisation.contenders.insert(utilisation.contenders.begin(), {"default", utilisation_default});
  utilisation.calibration.clear();
  utilisation.goal = kUtilisationGoal;
  studies.push_back(std::move(utilisation));
  std::erase_if(studies, [](const Study& study) { return study.splits.empty(); });
  return studies;
}

}  // namespace tierpilot::sharing

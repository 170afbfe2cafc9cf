#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/group_margin.h"

namespace tierpilot::sharing {
namespace {

std::vector<double> predicted(const Study& study, const Contender& contender,
                              const std::vector<size_t>& train, const std::vector<size_t>& test) {
  std::vector<Row> rows;
  std::vector<double> targets;
  for (const auto i : train) {
    rows.push_back(study.rows[i]);
    targets.push_back(study.targets[i]);
  }
  const auto regressor = contender.make();
  regressor->fit(rows, targets);
  std::vector<double> values;
  for (const auto i : test) values.push_back(regressor->predict(study.rows[i]));
  return values;
}

double loss(Measure measure, double difference) {
  return measure == Measure::kMeanAbsolute ? std::abs(difference) : difference * difference;
}

double mean_loss(Measure measure, double sum, size_t count) {
  const double mean = sum / static_cast<double>(count);
  return measure == Measure::kMeanAbsolute ? mean : std::sqrt(mean);
}

// Rows of one group only tell what a row needs that was not seen, not what a group does.
constexpr size_t kRowFolds = 10;

std::vector<std::string> numbered(size_t rows) {
  std::vector<std::string> groups;
  for (size_t i = 0; i < rows; ++i) groups.push_back(std::to_string(i % kRowFolds));
  return groups;
}

// By training row; as far as there are two groups those that the split is by.
std::vector<std::string> calibration_groups(const Study& study, const std::string& split,
                                            const std::vector<size_t>& train) {
  std::vector<std::string> found;
  for (const auto& grouping : study.calibration) {
    if (!found.empty() && grouping.name != split) continue;
    std::vector<std::string> groups;
    for (const auto i : train) groups.push_back(grouping.groups[i]);
    if (std::set<std::string>(groups.begin(), groups.end()).size() > 1) found = std::move(groups);
  }
  return found.empty() ? numbered(train.size()) : found;
}

// How far targets exceed predictions where a group was not seen.
double exceedance(const Study& study, const std::string& split, const std::vector<size_t>& train) {
  Split inner = leave_each_out("", calibration_groups(study, split, train));
  if (inner.folds.empty()) return 0;  // of one row
  std::vector<std::vector<double>> exceeds;
  for (auto& fold : inner.folds) {
    for (auto* part : {&fold.train, &fold.test})
      for (auto& i : *part) i = train[i];
    const auto values = predicted(study, study.contenders.front(), fold.train, fold.test);
    exceeds.emplace_back();
    for (size_t i = 0; i < values.size(); ++i)
      exceeds.back().push_back(study.targets[fold.test[i]] - values[i]);
  }
  return group_margin(exceeds);
}

Scored score(const Study& study, const Split& split, const Contender& contender) {
  Scored scored{split.name, contender.name, 0, 0, {}, 0};
  double total = 0;
  for (const auto& fold : split.folds) {
    const auto values = predicted(study, contender, fold.train, fold.test);
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i)
      sum += loss(study.measure, values[i] - study.targets[fold.test[i]]);
    const double error = mean_loss(study.measure, sum, values.size());
    if (scored.worst_group.empty() || error > scored.worst_error) {
      scored.worst_group = fold.held_out;
      scored.worst_error = error;
    }
    total += sum;
    scored.tested += values.size();
  }
  scored.error = mean_loss(study.measure, total, scored.tested);
  return scored;
}

PlacedScore score_placed(const Study& study, const Split& split) {
  PlacedScore placed{split.name, 0, 0};
  size_t tested = 0, under = 0;
  for (const auto& fold : split.folds) {
    const double margin = exceedance(study, split.name, fold.train);
    const auto values = predicted(study, study.contenders.front(), fold.train, fold.test);
    for (size_t i = 0; i < values.size(); ++i) {
      const double excess = values[i] + margin - study.targets[fold.test[i]];
      under += excess < 0;
      placed.mean_excess += excess;
    }
    tested += values.size();
  }
  placed.under_predicted = static_cast<double>(under) / static_cast<double>(tested);
  placed.mean_excess /= static_cast<double>(tested);
  return placed;
}

}  // namespace

StudyResult run_study(const Study& study) {
  StudyResult result;
  for (const auto& split : study.splits) {
    for (const auto& contender : study.contenders)
      result.scores.push_back(score(study, split, contender));
    if (!study.calibration.empty()) result.placed.push_back(score_placed(study, split));
  }
  return result;
}

}  // namespace tierpilot::sharing

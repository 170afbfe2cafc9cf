#include "policies/sharing/predict/jobs/job_rivals.h"

#include <cmath>

#include "policies/sharing/predict/jobs/card_rows.h"

namespace tierpilot::sharing {
namespace {

Row seen(const MeasuredTraining& row) {
  Row seen = figures_row(row.card);
  const auto& job = *row.card.job;
  seen.push_back(std::log1p(1e6 * job.loading_s(row.card.batch)));
  seen.push_back(job.loads_ahead ? 1 : 0);
  seen.push_back(std::log1p(static_cast<double>(job.iterations)));
  seen.push_back(std::log(row.calibration_s));
  if (!row.gpu) return seen;
  seen.push_back(std::log1p(row.gpu->float32_ops_per_s()));
  seen.push_back(std::log1p(row.gpu->memory_bytes_per_s()));
  seen.push_back(row.gpu->compute_capability);
  return seen;
}

// Of a GPU its compute capability, its memory and the number of its cores.
Row published(const MeasuredTraining& row) {
  Row seen = published_row(row.card);
  if (!row.gpu) return seen;
  seen.push_back(row.gpu->compute_capability);
  seen.push_back(std::log1p(static_cast<double>(row.gpu->memory_bytes)));
  seen.push_back(std::log1p(row.gpu->cores));
  return seen;
}

// Iterations beside FLOPs, else nothing of a run time could be said.
Row flops_only(const MeasuredTraining& row) {
  return {std::log1p(row.card.flops), std::log1p(static_cast<double>(row.card.job->iterations))};
}

struct Rival {
  const char* name;
  Row (*sees)(const MeasuredTraining&);
  std::unique_ptr<Regressor> (*make)();
};

const Rival kRivals[]{{"constant", seen, [] { return make_constant(); }},
                      {"linear", seen, [] { return make_ridge(1e-2); }},
                      {"nearest-neighbour", seen, [] { return make_nearest(1); }},
                      {"boosted-trees", seen, [] { return make_boosted_trees({}); }},
                      {"flops-only", flops_only, [] { return make_ridge(0); }},
                      {"mlp-published", published, [] { return make_perceptron({}); }}};

std::vector<Row> rows_of(const std::vector<MeasuredTraining>& trainings,
                         Row (*sees)(const MeasuredTraining&)) {
  std::vector<Row> rows;
  for (const auto& training : trainings) rows.push_back(sees(training));
  return rows;
}

void add_utilisation(std::vector<Row>& rows, const std::vector<MeasuredTraining>& train,
                     std::vector<Row>& test_rows) {
  std::vector<double> utilisation;
  for (const auto& row : train) utilisation.push_back(std::log1p(row.utilisation_milli / 10));
  const auto perceptron = make_perceptron({});
  perceptron->fit(rows, utilisation);
  for (auto& row : test_rows) row.push_back(perceptron->predict(row));
  for (size_t i = 0; i < rows.size(); ++i) rows[i].push_back(utilisation[i]);
}

}  // namespace

const std::vector<std::string>& predictor_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names{"default"};
    for (const auto& rival : kRivals) names.emplace_back(rival.name);
    return names;
  }();
  return kNames;
}

std::map<std::string, std::vector<double>> rivals_say(const std::vector<MeasuredTraining>& train,
                                                      const std::vector<double>& targets,
                                                      const std::vector<MeasuredTraining>& test,
                                                      Sees published_sees) {
  std::map<std::string, std::vector<double>> said;
  for (const auto& rival : kRivals) {
    auto rows = rows_of(train, rival.sees), test_rows = rows_of(test, rival.sees);
    if (rival.sees == published && published_sees == Sees::kCardAndUtilisation)
      add_utilisation(rows, train, test_rows);
    const auto regressor = rival.make();
    regressor->fit(rows, targets);
    for (const auto& row : test_rows) said[rival.name].push_back(regressor->predict(row));
  }
  return said;
}

}  // namespace tierpilot::sharing

#include "policies/sharing/predict/jobs/job_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/statistics.h"
#include "base/text/json_member.h"
#include "base/text/json_text.h"
#include "policies/sharing/predict/jobs/card_rows.h"
#include "policies/sharing/predict/mebibyte.h"

namespace tierpilot::sharing {
namespace {

constexpr CostSettings kSettings{.penalty = 3e-4};

Row joined(Row first, const Row& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<size_t> columns(size_t from, size_t to) {
  std::vector<size_t> all;
  for (size_t i = from; i < to; ++i) all.push_back(i);
  return all;
}

double median_calibration_s(const std::vector<MeasuredTraining>& rows) {
  std::vector<double> all;
  for (const auto& row : rows) all.push_back(row.calibration_s);
  return upper_median(std::move(all));
}

using Rows = std::vector<MeasuredTraining>;

// The regressors alone.
void fit_regressors(JobModel& model, const Rows& rows) {
  std::vector<Row> work, resident;
  std::vector<double> busy, memory;
  for (const auto& row : rows) {
    work.push_back(busy_row(row.card));
    busy.push_back(busy_target(row, model.calibration_s));
    resident.push_back(resident_row(row.card));
    memory.push_back(memory_target(row));
  }
  model.busy = make_busy_regressor();
  model.busy->fit(work, busy);
  model.memory = make_memory_regressor();
  model.memory->fit(resident, memory);
}

SaidUse said_of(const JobModel& model, const MeasuredTraining& row) {
  const double step_s = std::exp(model.busy->predict(busy_row(row.card))) / 1e3 *
                        row.calibration_s / model.calibration_s;
  return {.milli = milli_of(step_s, row.card),
          .step_s = step_s,
          .memory_bytes = kMib * std::expm1(model.memory->predict(resident_row(row.card)))};
}

// Each architecture is left out in turn.
Margins margins_over(const Rows& rows, double calibration_s) {
  std::vector<std::string> architectures;
  for (const auto& row : rows) architectures.push_back(row.architecture);
  const auto folds = folds_of(architectures);
  NeededMargins needed;
  for (size_t fold = 0; fold < kMostMarginFolds; ++fold) {
    Rows train, test;
    for (size_t i = 0; i < rows.size(); ++i) (folds[i] == fold ? test : train).push_back(rows[i]);
    if (train.empty() || test.empty()) continue;
    JobModel model{.calibration_s = calibration_s};
    fit_regressors(model, train);
    for (const auto& row : test) needed.add(row.architecture, said_of(model, row), row);
  }
  const std::set<std::string> distinct(architectures.begin(), architectures.end());
  return larger(least_margins(distinct.size()), needed.margins());
}

JobModel read_fields(const nlohmann::json& saved) {
  JobModel model{.engine = saved.at("engine").get<std::string>(),
                 .calibration_s = saved.at("calibration_s").get<double>(),
                 .float32_ops_per_s = saved.value("float32_ops_per_s", 0.0),
                 .busy_margin = saved.at("busy_margin").get<double>(),
                 .memory_margin = saved.at("memory_margin").get<double>(),
                 .cards = {.totals = {}, .kinds = saved.at("kinds").get<std::set<std::string>>()},
                 .architectures = saved.value("architectures", std::set<std::string>{})};
  for (const auto& range : saved.at("totals"))
    model.cards.totals.push_back({range.at(0).get<double>(), range.at(1).get<double>()});
  return model;
}

}  // namespace

Row busy_row(const ModelCard& card) {
  return joined(work_row(card), figures_row(card));
}

Row resident_row(const ModelCard& card) {
  return joined(memory_row(card), figures_row(card));
}

// The mean of a sum of costs, and of it with trees on what it leaves.
std::unique_ptr<Regressor> make_busy_regressor() {
  const auto costs = [] {
    return make_on_columns(columns(0, work_row({}).size()), make_cost_sum(kSettings));
  };
  std::vector<std::unique_ptr<Regressor>> members;
  members.push_back(costs());
  members.push_back(make_stacked(
      costs(), make_boosted_trees({.trees = 100, .depth = 3, .rate = 0.05, .least_rows = 20})));
  return make_average(std::move(members));
}

std::unique_ptr<Regressor> make_memory_regressor() {
  return make_on_columns(columns(0, memory_row({}).size()), make_cost_sum(kSettings));
}

double busy_target(const MeasuredTraining& row, double calibration_s) {
  return std::log(1e3 * row.busy_s * calibration_s / row.calibration_s);
}

double memory_target(const MeasuredTraining& row) {
  return std::log1p(row.memory_bytes / kMib);
}

JobModel fit_job_model(const std::vector<MeasuredTraining>& rows) {
  JobModel model{.calibration_s = median_calibration_s(rows)};
  for (const auto& row : rows) {
    model.cards.add(row.card);
    model.architectures.insert(row.architecture);
  }
  const auto margins = margins_over(rows, model.calibration_s);
  model.busy_margin = margins.run;
  model.memory_margin = margins.memory;
  fit_regressors(model, rows);
  return model;
}

double milli_of(double step_s, const ModelCard& card) {
  return std::clamp(1000 * step_s / std::max(iteration_s(step_s, card), 1e-12), 1.0, 1000.0);
}

double iteration_s(double step_s, const ModelCard& card) {
  if (!card.job) return step_s;
  const double loading_s = card.job->loading_s(card.batch);
  return card.job->loads_ahead ? std::max(step_s, loading_s) : step_s + loading_s;
}

nlohmann::json job_model_json(const JobModel& model) {
  nlohmann::json totals = nlohmann::json::array();
  for (const auto& range : model.cards.totals) totals.push_back({range.least, range.most});
  nlohmann::json saved{{"schema", 1},
                       {"kind", "job predictor"},
                       {"engine", model.engine},
                       {"calibration_s", model.calibration_s},
                       {"float32_ops_per_s", model.float32_ops_per_s},
                       {"busy_margin", model.busy_margin},
                       {"memory_margin", model.memory_margin},
                       {"totals", totals},
                       {"kinds", model.cards.kinds},
                       {"architectures", model.architectures},
                       {"busy", model.busy->saved()},
                       {"memory", model.memory->saved()}};
  if (model.pairs) saved["pairs"] = pair_prior_json(*model.pairs);
  if (model.gpu) saved["gpu"] = gpu_model_json(*model.gpu);
  return saved;
}

Result<JobModel> read_job_model(std::string_view text) {
  const auto saved = parse_json_or_discard<nlohmann::json>(text);
  const auto wrong = [](const std::string& what) {
    return fail(ErrorCode::kInvalid,
                "job predictor: " + what + "; `tierctl predictor train` makes such a file");
  };
  if (!saved.is_object()) return wrong("it is no JSON object");
  if (!member_is(saved, "kind", "job predictor") || !member_is(saved, "schema", 1))
    return wrong("it is of another kind or schema");
  try {
    auto model = read_fields(saved);
    auto busy = read_regressor(saved.at("busy"), busy_row({}).size());
    auto memory = read_regressor(saved.at("memory"), resident_row({}).size());
    if (!busy) return wrong(busy.error().message);
    if (!memory) return wrong(memory.error().message);
    if (model.cards.totals.size() != totals_of({}).size()) return wrong("it has other totals");
    if (!(model.calibration_s > 0) || !is_margin(model.busy_margin) ||
        !is_margin(model.memory_margin))
      return wrong("its margins or its calibration can be of no machine");
    model.busy = std::move(*busy);
    model.memory = std::move(*memory);
    if (saved.contains("pairs")) {
      auto pairs = read_pair_prior(saved["pairs"]);
      if (!pairs) return wrong(pairs.error().message);
      model.pairs = std::move(*pairs);
    }
    if (saved.contains("gpu")) {
      auto gpu = read_gpu_model(saved["gpu"]);
      if (!gpu) return wrong(gpu.error().message);
      model.gpu = std::move(*gpu);
    }
    return model;
  } catch (const nlohmann::json::exception& error) {
    return wrong(error.what());
  }
}

}  // namespace tierpilot::sharing

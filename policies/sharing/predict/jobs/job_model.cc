#include "policies/sharing/predict/jobs/job_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "policies/sharing/predict/jobs/card_rows.h"
#include "policies/sharing/predict/jobs/margins.h"

namespace tierpilot::sharing {
namespace {

constexpr double kBusyQuantile = 0.95;
constexpr double kMemoryQuantile = 0.995;
constexpr double kMib = 1 << 20;
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

// The quantile by which targets exceed what a regressor says that has not seen their architecture.
double margin(std::unique_ptr<Regressor> (*make)(), const std::vector<Row>& rows,
              const std::vector<double>& targets, const std::vector<size_t>& folds,
              double quantile) {
  std::vector<double> exceeds;
  for (size_t fold = 0; fold < kMarginFolds; ++fold) {
    std::vector<Row> known;
    std::vector<double> their_targets;
    for (size_t i = 0; i < rows.size(); ++i)
      if (folds[i] != fold) {
        known.push_back(rows[i]);
        their_targets.push_back(targets[i]);
      }
    if (known.empty() || known.size() == rows.size()) continue;
    const auto regressor = make();
    regressor->fit(known, their_targets);
    for (size_t i = 0; i < rows.size(); ++i)
      if (folds[i] == fold) exceeds.push_back(targets[i] - regressor->predict(rows[i]));
  }
  return upper_margin(std::move(exceeds), quantile);
}

double median_calibration_s(const std::vector<MeasuredTraining>& rows) {
  std::vector<double> all;
  for (const auto& row : rows) all.push_back(row.calibration_s);
  std::nth_element(all.begin(), all.begin() + static_cast<ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

JobModel read_fields(const nlohmann::json& saved) {
  JobModel model{.engine = saved.at("engine").get<std::string>(),
                 .calibration_s = saved.at("calibration_s").get<double>(),
                 .float32_ops_per_s = saved.value("float32_ops_per_s", 0.0),
                 .busy_margin = saved.at("busy_margin").get<double>(),
                 .memory_margin = saved.at("memory_margin").get<double>(),
                 .cards = {.totals = {}, .kinds = saved.at("kinds").get<std::set<std::string>>()}};
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
  std::vector<Row> busy_rows, resident_rows;
  std::vector<double> busy, memory;
  std::vector<std::string> architectures;
  for (const auto& row : rows) {
    architectures.push_back(row.architecture);
    model.cards.add(row.card);
    busy_rows.push_back(busy_row(row.card));
    busy.push_back(busy_target(row, model.calibration_s));
    resident_rows.push_back(resident_row(row.card));
    memory.push_back(memory_target(row));
  }
  const auto folds = folds_of(architectures);
  model.busy_margin = margin(make_busy_regressor, busy_rows, busy, folds, kBusyQuantile);
  model.memory_margin =
      margin(make_memory_regressor, resident_rows, memory, folds, kMemoryQuantile);
  model.busy = make_busy_regressor();
  model.busy->fit(busy_rows, busy);
  model.memory = make_memory_regressor();
  model.memory->fit(resident_rows, memory);
  return model;
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
                       {"busy", model.busy->saved()},
                       {"memory", model.memory->saved()}};
  if (model.pairs) saved["pairs"] = pair_prior_json(*model.pairs);
  if (model.gpu) saved["gpu"] = gpu_model_json(*model.gpu);
  return saved;
}

Result<JobModel> read_job_model(std::string_view text) {
  const auto saved = nlohmann::json::parse(text, nullptr, false);
  const auto wrong = [](const std::string& what) {
    return fail(ErrorCode::kInvalid,
                "job predictor: " + what + "; `tierctl predictor train` makes such a file");
  };
  if (!saved.is_object()) return wrong("it is no JSON object");
  if (saved.value("/kind"_json_pointer, nlohmann::json()) != "job predictor" ||
      saved.value("/schema"_json_pointer, nlohmann::json()) != 1)
    return wrong("it is of another kind or schema");
  try {
    auto model = read_fields(saved);
    auto busy = read_regressor(saved.at("busy"), busy_row({}).size());
    auto memory = read_regressor(saved.at("memory"), resident_row({}).size());
    if (!busy) return wrong(busy.error().message);
    if (!memory) return wrong(memory.error().message);
    if (model.cards.totals.size() != totals_of({}).size()) return wrong("it has other totals");
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

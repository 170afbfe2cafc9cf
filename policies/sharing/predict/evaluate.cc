#include "policies/sharing/predict/evaluate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "policies/sharing/predict/card_times.h"
#include "policies/sharing/predict/core_pairs.h"
#include "policies/sharing/predict/estimator_data.h"
#include "policies/sharing/predict/gpu_kinds.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "policies/sharing/predict/jobs/job_study.h"
#include "policies/sharing/predict/pairs/pair_data.h"
#include "policies/sharing/predict/perceptron_data.h"

namespace tierpilot::sharing {
namespace {

using nlohmann::ordered_json;

// A file of one format, and what became of its rows.
template <class Data>
ordered_json read_json(const char* format, const Data& data) {
  ordered_json value{{"format", format}, {"skipped", data.skipped}};
  if (data.skipped > 0) value["first_skipped"] = data.first_skipped;
  return value;
}

ordered_json studies_json(ordered_json value, const std::vector<Study>& studies,
                          const Progress& progress) {
  value["studies"] = ordered_json::array();
  for (const auto& study : studies) {
    if (study.splits.empty()) continue;  // nothing of it can be left out
    value["studies"].push_back(study_json(study, run_study(study)));
    if (progress)
      progress(static_cast<double>(value["studies"].size()) / static_cast<double>(studies.size()));
  }
  return value;
}

std::vector<Study> untrained_pair_studies(const PairData& data) {
  PairData on_cores, on_gpus;
  for (const auto& sample : data.samples)
    (is_of_cores(sample.card) ? on_cores : on_gpus).samples.push_back(sample);
  std::vector<Study> studies;
  if (!on_cores.samples.empty())
    studies = tell_use(on_cores) ? core_pair_studies(on_cores) : pair_studies(on_cores);
  if (!on_gpus.samples.empty())
    for (auto& study : tell_milli(on_gpus) ? measured_use_studies(on_gpus) : pair_studies(on_gpus))
      studies.push_back(std::move(study));
  return studies;
}

std::set<std::string> cards_of_which_nothing_is_published(const PairData& data) {
  std::set<std::string> unknown;
  for (const auto& sample : data.samples)
    if (!is_of_cores(sample.card) && !published_gpu(sample.card)) unknown.insert(sample.card);
  return unknown;
}

Result<ordered_json> of_pairs(CsvTable& table, CsvTable* train, const Progress& progress,
                              const ReadInstalled&) {
  const auto data = read_pairs(table);
  if (!data) return tl::unexpected(data.error());
  auto value = read_json("pairs", *data);
  value["pairs_that_do_not_fit"] = data->do_not_fit;
  if (auto unknown = cards_of_which_nothing_is_published(*data); !unknown.empty())
    value["unknown_cards"] = std::move(unknown);
  if (!train) return studies_json(std::move(value), untrained_pair_studies(*data), progress);
  const auto known = read_pairs(*train);
  if (!known) return tl::unexpected(known.error());
  // Laws of what was measured alone are not trained.
  const bool tell = tell_milli(*known) && tell_milli(*data);
  return studies_json(std::move(value),
                      tell ? measured_use_studies(*data) : pair_studies(*known, *data), progress);
}

Result<ordered_json> of_perceptrons(CsvTable& table, CsvTable* train, const Progress& progress,
                                    const ReadInstalled&) {
  const auto data = read_perceptrons(table);
  if (!data) return tl::unexpected(data.error());
  auto value = read_json("perceptrons", *data);
  if (!train) return studies_json(std::move(value), perceptron_studies(*data, nullptr), progress);
  const auto known = read_perceptrons(*train);
  if (!known) return tl::unexpected(known.error());
  return studies_json(std::move(value), perceptron_studies(*data, &*known), progress);
}

Result<ordered_json> of_estimators(CsvTable& table, CsvTable* train, const Progress& progress,
                                   const ReadInstalled&) {
  const auto data = read_estimators(table);
  if (!data) return tl::unexpected(data.error());
  auto value = read_json("memory estimators", *data);
  if (!train) return studies_json(std::move(value), {estimator_study(*data, nullptr)}, progress);
  const auto known = read_estimators(*train);
  if (!known) return tl::unexpected(known.error());
  if (known->estimators != data->estimators)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: it tells of other estimators than {}: give tables with the same "
                            "columns, or leave out --train",
                            train->place(), table.place()));
  return studies_json(std::move(value), {estimator_study(*data, &*known)}, progress);
}

// Nothing where it cannot be had; why, stands in `value`.
std::optional<Installed> read_installed(const TrainingTable& data, const ReadInstalled& read,
                                        ordered_json& value) {
  if (!read) return std::nullopt;
  auto installed = read();
  const auto* model = installed ? installed->model.get() : nullptr;
  if (model && !model->architectures.empty()) {
    value["installed"] = installed_json(data, installed->model);
    return std::move(*installed);
  }
  value["installed"] = nullptr;
  value["installed_unavailable"] =
      model ? "the installed predictor does not tell what it was trained on: train it again"
            : installed.error().message;
  return std::nullopt;
}

Result<ordered_json> of_trainings(CsvTable& table, CsvTable* train, const Progress& progress,
                                  const ReadInstalled& read) {
  const auto data = read_trainings(table);
  if (!data) return tl::unexpected(data.error());
  auto value = read_json("trainings", *data);
  if (!train) {
    const auto installed = read_installed(*data, read, value);
    value["studies"] = study_trainings(*data, nullptr, progress, installed ? &*installed : nullptr);
    return value;
  }
  const auto known = read_trainings(*train);
  if (!known) return tl::unexpected(known.error());
  value["studies"] = study_trainings(*data, &*known, progress);
  return value;
}

// Nothing is trained: what is published of cards tells how they differ.
Result<ordered_json> of_card_times(CsvTable& table, CsvTable* train, const Progress&,
                                   const ReadInstalled&) {
  if (train)
    return fail(ErrorCode::kInvalid,
                "times on cards are told by features of these, and nothing is trained: leave out "
                "--train");
  const auto data = read_card_times(table);
  if (!data) return tl::unexpected(data.error());
  auto value = read_json("times by card", *data);
  value["studies"] = study_card_times(*data);
  return value;
}

const char* measure_name(Measure measure) {
  switch (measure) {
    case Measure::kRootMeanSquareLog:
      return "RMSLE";
    case Measure::kRootMeanSquareLn:
      return "root mean square of ln";
    case Measure::kMeanAbsolute:
      break;
  }
  return "mean absolute error";
}

struct Format {
  bool (*is)(const CsvTable&);
  Result<ordered_json> (*evaluate)(CsvTable& data, CsvTable* train, const Progress& progress,
                                   const ReadInstalled& installed);
};
constexpr Format kFormats[]{{is_pair_table, of_pairs},
                            {is_perceptron_table, of_perceptrons},
                            {is_estimator_table, of_estimators},
                            {is_training_table, of_trainings},
                            {is_card_times, of_card_times}};

}  // namespace

ordered_json study_json(const Study& study, const StudyResult& result) {
  ordered_json value{{"target", study.target},
                     {"measure", measure_name(study.measure)},
                     {"rows", study.rows.size()}};
  if (study.goal > 0) value["goal"] = study.goal;
  value["scores"] = ordered_json::array();
  for (const auto& scored : result.scores)
    value["scores"].push_back({{"split", scored.split},
                               {"predictor", scored.contender},
                               {"error", scored.error},
                               {"tested", scored.tested},
                               {"worst_group", scored.worst_group},
                               {"worst_error", scored.worst_error}});
  value["placed"] = ordered_json::array();
  for (const auto& placed : result.placed)
    value["placed"].push_back({{"split", placed.split},
                               {"under_predicted", placed.under_predicted},
                               {"mean_log_excess", placed.mean_excess}});
  return value;
}

Result<ordered_json> evaluate_predictors(const std::filesystem::path& data,
                                         const std::filesystem::path& train,
                                         const Progress& progress, const ReadInstalled& installed) {
  auto table = CsvTable::open(data);
  if (!table) return tl::unexpected(table.error());
  for (const auto& format : kFormats) {
    if (!format.is(*table)) continue;
    if (train.empty()) return format.evaluate(*table, nullptr, progress, installed);
    auto known = CsvTable::open(train);
    if (!known) return tl::unexpected(known.error());
    if (!format.is(*known))
      return fail(ErrorCode::kInvalid,
                  fmt::format("'{}' has other columns than '{}'", train.string(), data.string()));
    return format.evaluate(*table, &*known, progress, installed);
  }
  return fail(
      ErrorCode::kInvalid,
      fmt::format("'{}': its header is of no known measurement: wanted are model_a, alone_a, "
                  "together_a and the same of b (pairs); batch, parameters, widths, "
                  "memory_mib or gpu_util (perceptrons); model, actual_mib, horus_mib or "
                  "faketensor_mib (memory estimators); gpu, model, gpus, steps_s or gpu, network, "
                  "epoch_s (times by card); or what `tierctl predictor collect` "
                  "writes (trainings)",
                  data.string()));
}

}  // namespace tierpilot::sharing

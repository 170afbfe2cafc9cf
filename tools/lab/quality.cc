// tierctl quality: how well losses of training jobs are foretold.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "policies/quality/predictor.h"
#include "policies/sim/quality/prediction_summary.h"
#include "tools/lab/command.h"
#include "tools/output/arguments.h"
#include "tools/output/laboratory_help.h"

namespace tierpilot::lab {
namespace {

struct AccuracyOptions {
  std::string curves;
  std::string measure;
  double at = 0.5;
  uint32_t origins = 1;
  std::vector<std::string> families;
  std::vector<std::string> runs;
};

std::vector<Column> measure_columns() {
  return {{"PREDICTIONS", "/predictions", Format::kNumber},
          {"MEAN ERROR %", "/mean_error_percent", Format::kNumber},
          {"MEDIAN %", "/median_error_percent", Format::kNumber},
          {"P90 %", "/p90_error_percent", Format::kNumber},
          {"NOISE FLOOR %", "/noise_floor_percent", Format::kNumber},
          {"IN 80 % INTERVAL %", "/coverage_percent", Format::kNumber}};
}

std::vector<Table> tables() {
  Table combined{.title = "All families, each counting alike",
                 .rows = "/combined",
                 .columns = {{"REPORTS AHEAD", "/horizon"}, {"PREDICTOR", "/predictor"}},
                 .empty = "nothing could be predicted"};
  Table families{.title = "By family, the worst first",
                 .rows = "/families",
                 .columns = {{"REPORTS AHEAD", "/horizon"},
                             {"PREDICTOR", "/predictor"},
                             {"FAMILY", "/family"}},
                 .empty = "nothing could be predicted"};
  for (const auto& column : measure_columns()) {
    combined.columns.push_back(column);
    families.columns.push_back(column);
  }
  return {std::move(combined), std::move(families)};
}

// From `at` on, evenly to nine tenths of what is left.
std::vector<double> origins_of(const AccuracyOptions& options) {
  std::vector<double> origins;
  for (uint32_t i = 0; i < options.origins; ++i)
    origins.push_back(options.at + (1 - options.at) * 0.9 * i / options.origins);
  return origins;
}

void keep_wanted(std::vector<sim::LossCurve>& curves, const AccuracyOptions& options) {
  const auto unwanted = [](const std::vector<std::string>& wanted, const std::string& name) {
    return !wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end();
  };
  std::erase_if(curves, [&](const sim::LossCurve& curve) {
    return unwanted(options.families, curve.family) || unwanted(options.runs, curve.run);
  });
}

std::vector<std::string> warnings_of(const sim::CurveFile& file,
                                     const std::vector<sim::CurveTrial>& trials) {
  std::vector<std::string> warnings;
  if (file.skipped > 0)
    warnings.push_back(fmt::format("{} of {} rows were left out; the first: {}", file.skipped,
                                   file.rows, file.first_skipped));
  const auto tell = [&](std::string sim::CurveTrial::*why, const char* what) {
    const auto has = [&](const sim::CurveTrial& trial) { return !(trial.*why).empty(); };
    const auto first = std::find_if(trials.begin(), trials.end(), has);
    if (first != trials.end())
      warnings.push_back(fmt::format("at {} of {} points of runs {}; the first is of run '{}': {}",
                                     std::count_if(trials.begin(), trials.end(), has),
                                     trials.size(), what, file.curves[first->curve].run,
                                     (*first).*why));
  };
  tell(&sim::CurveTrial::skipped, "nothing could be predicted");
  tell(&sim::CurveTrial::left_out, "not all could be predicted");
  return warnings;
}

int predict(const Context& context, const AccuracyOptions& options) {
  auto file = sim::read_curve_files(options.curves, options.measure);
  if (!file) return print_error(context.output, file.error());
  keep_wanted(file->curves, options);
  if (file->curves.empty())
    return print_error(
        context.output,
        {ErrorCode::kNotFound,
         fmt::format("{}: no curve is of the families and runs that were named", options.curves)});
  const auto names = quality::predictor_names();
  const std::vector<std::string> predictors(names.begin(), names.end());
  const auto trials = sim::try_predictors(file->curves, predictors, origins_of(options));
  if (!trials) return print_error(context.output, trials.error());
  nlohmann::ordered_json value{{"file", options.curves},
                               {"at", options.at},
                               {"origins", options.origins},
                               {"ahead_in", "reports"}};
  value.update(sim::prediction_json(file->curves, predictors, *trials));
  return print(context.output, value, tables(), warnings_of(*file, *trials));
}

}  // namespace

void add_quality(CLI::App& app, Context& context) {
  auto* quality = app.add_subcommand("quality", laboratory_help::kQuality);
  quality->require_subcommand(1);
  auto* command = quality->add_subcommand("predict", laboratory_help::kQualityPredict);
  auto options = std::make_shared<AccuracyOptions>();
  command
      ->add_option("CURVES", options->curves,
                   "CSV with the columns iteration (or step) and loss, or a folder of them")
      ->type_name("FILE")
      ->required();
  command->add_option("--at", options->at, "the part of each run that is known")
      ->type_name("SHARE")
      ->check(number_between(0.01, 0.99))
      ->capture_default_str();
  command
      ->add_option("--origins", options->origins,
                   "predict from so many points of each run, from that one on")
      ->type_name("N")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  command->add_option("--column", options->measure, "the measure to predict (default: the loss)")
      ->type_name("NAME");
  command->add_option("--family", options->families, "only these families")
      ->delimiter(',')
      ->type_name("NAME,...");
  command->add_option("--run", options->runs, "only these runs")
      ->delimiter(',')
      ->type_name("NAME,...");
  command->callback([&context, options] {
    context.command = [&context, options] { return predict(context, *options); };
  });
}

}  // namespace tierpilot::lab

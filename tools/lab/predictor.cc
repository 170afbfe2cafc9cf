// tierctl predictor evaluate: predictors on measurements.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "policies/sharing/predict/evaluate.h"
#include "tools/lab/command.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

const std::vector<Column> kScores{{"SPLIT BY", "/split"},
                                  {"PREDICTOR", "/predictor"},
                                  {"ERROR", "/error", Format::kNumber},
                                  {"TESTED", "/tested", Format::kNumber},
                                  {"WORST GROUP", "/worst_group"},
                                  {"ITS ERROR", "/worst_error", Format::kNumber}};
const std::vector<Column> kPlaced{
    {"SPLIT BY", "/split"},
    {"UNDER-PREDICTED", "/under_predicted", Format::kPercent},
    {"MEAN LN(PLACED/MEASURED)", "/mean_log_excess", Format::kNumber}};

int run(const Context& context, const std::string& data, const std::string& train) {
  const auto value = sharing::evaluate_predictors(data, train);
  if (!value) return print_error(context.output, value.error());
  std::vector<Table> tables;
  const auto& studies = (*value)["studies"];
  for (size_t i = 0; i < studies.size(); ++i) {
    const std::string at = "/studies/" + std::to_string(i);
    const auto name = studies[i]["target"].get<std::string>();
    tables.push_back({.title = name + ", " + studies[i]["measure"].get<std::string>(),
                      .rows = at + "/scores",
                      .columns = kScores});
    if (!studies[i]["placed"].empty())
      tables.push_back({.title = name + ", the quantile that is placed by",
                        .rows = at + "/placed",
                        .columns = kPlaced});
  }
  std::vector<std::string> warnings;
  if (value->contains("first_skipped"))
    warnings.push_back("rows were skipped: " + (*value)["first_skipped"].get<std::string>());
  if (studies.empty()) warnings.emplace_back("too few groups to leave one out: nothing was tested");
  return print(context.output, *value, tables, warnings);
}

}  // namespace

void add_predictor(CLI::App& app, Context& context) {
  auto* predictor =
      app.add_subcommand("predictor", "what jobs will use of a unit, predicted and measured");
  predictor->require_subcommand(1);
  auto* evaluate = predictor->add_subcommand(
      "evaluate", "predictors on measurements of jobs that they were not trained on");
  struct Arguments {
    std::string data, train;
  };
  auto given = std::make_shared<Arguments>();
  evaluate
      ->add_option("--data", given->data,
                   "measurements; its header tells of what (pairs, perceptrons, memory estimators)")
      ->required()
      ->type_name("FILE");
  evaluate
      ->add_option("--train", given->train,
                   "train on this file and test on all of --data (default: train and test on parts "
                   "of --data that have no card, model or family in common)")
      ->type_name("FILE");
  evaluate->callback([&context, given] {
    context.command = [&context, given] { return run(context, given->data, given->train); };
  });
}

}  // namespace tierpilot::lab

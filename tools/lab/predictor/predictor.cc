// tierctl predictor: measurements of jobs, and predictors from them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "policies/sharing/predict/core_pairs.h"
#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "tools/lab/collect.h"
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

const std::vector<Column> kTrained{
    {"Predictor", "/predictor"},
    {"Configurations", "/configurations", Format::kNumber},
    {"Architectures", "/architectures", Format::kNumber},
    {"Margin of time, ln", "/busy_margin", Format::kNumber},
    {"Margin of memory, ln", "/memory_margin", Format::kNumber},
    {"Speed kept beside another", "/kept_beside_another", Format::kPercent}};

Result<sharing::TrainingTable> read_table(const std::string& path) {
  auto table = CsvTable::open(path);
  if (!table) return tl::unexpected(table.error());
  if (sharing::is_training_table(*table)) return sharing::read_trainings(*table);
  return fail(ErrorCode::kInvalid,
              fmt::format("'{}' is no table of `tierctl predictor collect`", path));
}

// What trainings keep beside each other; nothing without a table.
Result<std::optional<sharing::PairPrior>> fit_pairs(const std::string& path) {
  if (path.empty()) return std::nullopt;
  auto table = CsvTable::open(path);
  if (!table) return tl::unexpected(table.error());
  if (!sharing::is_pair_table(*table))
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' is no table of `tierctl predictor collect --pairs`", path));
  const auto pairs = sharing::read_pairs(*table);
  if (!pairs) return tl::unexpected(pairs.error());
  auto prior = sharing::fit_pair_prior(*pairs);
  if (!prior) return fail(prior.error().code, path + ": " + prior.error().message);
  return std::move(*prior);
}

// Of the core that the table was measured on, as its description beside it says; 0: it does not.
double float32_ops_per_s(const std::string& table) {
  std::ifstream file(std::filesystem::path(table).replace_extension(".json"));
  const auto described = nlohmann::json::parse(file, nullptr, false);
  if (!described.is_object() || !described.contains("machine")) return 0;
  const auto& machine = described["machine"];
  const auto found = machine.is_object() ? machine.find("float32_ops_per_s") : machine.end();
  return found != machine.end() && found->is_number() ? std::max(0.0, found->get<double>()) : 0;
}

int train(const Context& context, const std::string& data, const std::string& pairs,
          const std::string& out) {
  const auto table = read_table(data);
  if (!table) return print_error(context.output, table.error());
  auto prior = fit_pairs(pairs);
  if (!prior) return print_error(context.output, prior.error());
  auto model = sharing::fit_job_model(table->rows);
  model.pairs = std::move(*prior);
  model.float32_ops_per_s = float32_ops_per_s(data);
  std::ofstream file(out, std::ios::binary);
  file << sharing::job_model_json(model).dump(1) << '\n';
  if (!file.flush())
    return print_error(context.output,
                       fail_errno(errno, fmt::format("'{}' cannot be written", out)).value());
  std::set<std::string> architectures;
  for (const auto& row : table->rows) architectures.insert(row.architecture);
  const ordered_json value{
      {"predictor", out},
      {"configurations", table->rows.size()},
      {"architectures", architectures.size()},
      {"skipped", table->skipped},
      {"busy_margin", model.busy_margin},
      {"memory_margin", model.memory_margin},
      {"kept_beside_another", model.pairs ? ordered_json(std::exp(model.pairs->ln)) : nullptr}};
  std::vector<std::string> warnings;
  if (table->skipped > 0) warnings.push_back("rows were skipped: " + table->first_skipped);
  return print(context.output, value, {{.rows = "", .columns = kTrained}}, warnings);
}

void add_collect(CLI::App& predictor, Context& context) {
  auto* collect = predictor.add_subcommand(
      "collect", "train models of many architectures on one core, and measure what they use");
  auto given = std::make_shared<CollectOptions>();
  collect->add_option("--out", given->out, "the table; its machine goes beside it as .json")
      ->required()
      ->type_name("FILE.csv");
  collect->add_flag("--pairs", given->pairs,
                    "two trainings at a time, each alone and beside the other: what they keep of "
                    "their speed");
  collect->add_option("--configurations", given->configurations, "how many trainings, or pairs")
      ->check(CLI::Range(1U, 100'000U))
      ->type_name("N")
      ->capture_default_str();
  collect
      ->add_option("--seconds", given->seconds,
                   "each is measured for; of pairs, each of five rounds alone and together")
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("S")
      ->capture_default_str();
  collect->add_option("--architectures", given->architectures, "these only (default: all)")
      ->type_name("NAME,...");
  collect->add_option("--seed", given->seed, "what is drawn: the same seed, the same trainings")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1'000'000'000}))
      ->type_name("S")
      ->capture_default_str();
  collect->add_option("--cpu", given->cpu, "the core to measure on (default: the last one)")
      ->check(CLI::Range(0, 1 << 16))
      ->type_name("N");
  collect
      ->add_option("--python", given->python,
                   "with PyTorch (default: python3, or /usr/bin/python3)")
      ->type_name("PROGRAM");
  collect->callback([&context, given] {
    context.command = [&context, given] { return lab::collect(context, *given); };
  });
}

void add_training(CLI::App& predictor, Context& context) {
  auto* command = predictor.add_subcommand(
      "train", "predict use of a core, memory and run time of trainings from their model cards");
  struct Arguments {
    std::string data, pairs, out;
  };
  auto given = std::make_shared<Arguments>();
  command->add_option("--data", given->data, "what `tierctl predictor collect` wrote")
      ->required()
      ->type_name("FILE.csv");
  command
      ->add_option("--pairs", given->pairs,
                   "what `tierctl predictor collect --pairs` wrote: it learns slow-downs by "
                   "neighbours, too")
      ->type_name("FILE.csv");
  command->add_option("--out", given->out, "the predictor")->required()->type_name("FILE.json");
  command->callback([&context, given] {
    context.command = [&context, given] {
      return train(context, given->data, given->pairs, given->out);
    };
  });
}

}  // namespace

void add_predictor(CLI::App& app, Context& context) {
  auto* predictor =
      app.add_subcommand("predictor", "what jobs will use of a unit, predicted and measured");
  predictor->require_subcommand(1);
  add_collect(*predictor, context);
  add_training(*predictor, context);
  add_prediction(*predictor, context);
  auto* evaluate = predictor->add_subcommand(
      "evaluate", "predictors on measurements of jobs that they were not trained on");
  struct Arguments {
    std::string data, train;
  };
  auto given = std::make_shared<Arguments>();
  evaluate
      ->add_option("--data", given->data,
                   "measurements; its header tells of what (trainings, pairs, perceptrons, "
                   "memory estimators)")
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

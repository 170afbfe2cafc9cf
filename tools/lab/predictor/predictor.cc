// tierctl predictor: measurements of jobs, and predictors from them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "policies/sharing/predict/evaluate.h"
#include "tools/lab/command.h"
#include "tools/lab/predictor/collect.h"
#include "tools/lab/predictor/predictor_file.h"
#include "tools/lab/progress_bar.h"
#include "tools/output/arguments.h"
#include "tools/output/laboratory_help.h"

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
const std::vector<Column> kInstalled{
    {"Rows that are new to the installed predictor", "/tested_rows", Format::kNumber},
    {"Rows whose like it was trained on, not tested by it", "/known_rows", Format::kNumber},
    {"Rows that it would not be believed of: a job has its user's share", "/unlike_rows",
     Format::kNumber},
    {"as the first is", "/first_unlike"}};

// It takes minutes: a bar on a terminal, elsewhere a line on stderr every 20 seconds, but for those
// who asked for JSON.
class Evaluated {
 public:
  explicit Evaluated(const Output& output)
      : out_(*output.err), silent_(output.json), terminal_(isatty(STDERR_FILENO) != 0) {}
  void operator()(double share) {
    if (terminal_) return void(bar_.show(share));
    if (silent_) return;
    const auto gone = std::chrono::steady_clock::now() - begin_;
    if (gone < next_) return;
    next_ = gone + kBetweenLines;
    out_ << fmt::format("evaluated {:.0f} % in {:.0f} s\n", 100 * share,
                        std::chrono::duration<double>(gone).count())
         << std::flush;
  }
  void clear() { bar_.clear(); }

 private:
  static constexpr std::chrono::nanoseconds kBetweenLines = std::chrono::seconds(20);

  std::ostream& out_;
  const bool silent_, terminal_;
  ProgressBar bar_{stderr, terminal_};
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds next_ = kBetweenLines;
};

int run(const Context& context, const std::string& data, const std::string& train) {
  Evaluated evaluated(context.output);
  const auto value = sharing::evaluate_predictors(data, train, std::ref(evaluated), read_installed);
  evaluated.clear();
  if (!value) return print_error(context.output, value.error());
  std::vector<Table> tables;
  const auto installed = value->value("installed", ordered_json());
  if (!installed.is_null()) tables.push_back({.rows = "/installed", .columns = kInstalled});
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
  if (value->contains("unknown_cards"))
    warnings.push_back(fmt::format(
        "of these cards nothing is published here, and how fast they are is taken to be "
        "alike: {}",
        fmt::join((*value)["unknown_cards"].get<std::vector<std::string>>(), ", ")));
  if (value->contains("installed_unavailable"))
    warnings.push_back("the installed predictor was not tested: " +
                       (*value)["installed_unavailable"].get<std::string>());
  if (studies.empty()) warnings.emplace_back("too few groups to leave one out: nothing was tested");
  return print(context.output, *value, tables, warnings);
}

void add_collect(CLI::App& predictor, Context& context) {
  auto* collect = predictor.add_subcommand("collect", laboratory_help::kPredictorCollect);
  auto given = std::make_shared<CollectOptions>();
  collect->add_option("--out", given->out, "the table; its machine goes beside it as .json")
      ->required()
      ->type_name("FILE.csv");
  collect->add_flag("--overwrite", given->overwrite, "replace a table that is there");
  collect->add_flag("--pairs", given->pairs,
                    "two trainings at a time, each alone and beside the other: what they keep of "
                    "their speed");
  collect->add_option("--configurations", given->configurations, "how many trainings, or pairs")
      ->check(CLI::Range(1U, 100'000U))
      ->type_name("N")
      ->capture_default_str();
  collect
      ->add_option("--seconds", given->seconds,
                   "each is measured for; of pairs, each of five rounds (on a GPU three) alone and "
                   "together")
      ->check(number_between(0.01, 3600.0))
      ->type_name("S")
      ->capture_default_str();
  collect
      ->add_option("--time-limit", given->time_limit_s,
                   "a training that does not answer for so long, beyond --seconds, is killed and "
                   "left out")
      ->check(number_between(0.01, 1e6))
      ->type_name("S")
      ->capture_default_str();
  collect->add_option("--architectures", given->architectures, "these only (default: all)")
      ->type_name("NAME,...");
  collect->add_option("--seed", given->seed, "what is drawn: the same seed, the same trainings")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1'000'000'000}))
      ->type_name("S")
      ->capture_default_str();
  collect
      ->add_option("--grow-batches", given->grow_batches,
                   "on a GPU batches are up to so many times larger than on a core")
      ->check(CLI::Range(1U, 1'000'000U))
      ->type_name("N")
      ->capture_default_str();
  collect->add_option("--cpu", given->cpu, "the core to measure on (default: the last one)")
      ->check(CLI::Range(0, 1 << 16))
      ->type_name("N");
  collect
      ->add_option("--device", given->device,
                   "cpu, or the GPU to measure on: cuda, or cuda:N as CUDA numbers them")
      ->type_name("cpu|cuda[:N]")
      ->capture_default_str();
  collect
      ->add_option("--python", given->python,
                   "with PyTorch (default: python3, or /usr/bin/python3)")
      ->type_name("PROGRAM");
  collect->callback([&context, given] {
    context.command = [&context, given] { return lab::collect(context, *given); };
  });
}

}  // namespace

void add_predictor(CLI::App& app, Context& context) {
  auto* predictor = app.add_subcommand("predictor", laboratory_help::kPredictor);
  predictor->require_subcommand(1);
  add_collect(*predictor, context);
  add_training(*predictor, context);
  add_prediction(*predictor, context);
  auto* evaluate = predictor->add_subcommand("evaluate", laboratory_help::kPredictorEvaluate);
  struct Arguments {
    std::string data, train;
  };
  auto given = std::make_shared<Arguments>();
  evaluate
      ->add_option("--data", given->data,
                   "measurements; its header tells of what (trainings, pairs, perceptrons, "
                   "memory estimators, times by card)")
      ->required()
      ->type_name("FILE");
  evaluate
      ->add_option(
          "--train", given->train,
          "train on this file and test on all of --data, of trainings on those of "
          "other architectures or cards (default: train and test on parts of --data that have "
          "no card, model or family in common, and of trainings test what is installed, too)")
      ->type_name("FILE");
  evaluate->callback([&context, given] {
    context.command = [&context, given] { return run(context, given->data, given->train); };
  });
}

}  // namespace tierpilot::lab

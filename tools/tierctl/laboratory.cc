// Commands that run policies: tierctl becomes the program that has them (tools/lab).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>

#include "tools/cluster/program.h"
#include "tools/output/laboratory_help.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {
namespace {

int become_lab(const Context& context, std::vector<std::string> words) {
  const auto program = find_program("tierpilot-lab");
  if (!program) return print_error(context.output, program.error());
  if (context.output.json) words.insert(words.begin(), "-j");
  words.insert(words.begin(), program->string());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program->c_str(), argv.data());
  return print_error(
      context.output,
      fail_errno(errno, fmt::format("'{}' cannot be run", program->string())).value());
}

// `words` are the command in that program.
void add_lab_command(CLI::App& parent, Context& context, std::vector<std::string> words,
                     const std::string& help) {
  auto* command = parent.add_subcommand(words.back(), help);
  command->prefix_command();
  command->set_help_flag();  // the other program has the options
  command->callback([&context, command, words] {
    auto all = words;
    const auto rest = command->remaining();
    all.insert(all.end(), rest.begin(), rest.end());
    context.command = [&context, all] { return become_lab(context, all); };
  });
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
  add_lab_command(app, context, {"simulate"}, laboratory_help::kSimulate);
}

void add_quality(CLI::App& app, Context& context) {
  auto* quality = app.add_subcommand("quality", laboratory_help::kQuality);
  quality->require_subcommand(1);
  add_lab_command(*quality, context, {"quality", "predict"}, laboratory_help::kQualityPredict);
}

void add_model(CLI::App& app, Context& context) {
  auto* model = app.add_subcommand("model", laboratory_help::kModel);
  model->require_subcommand(1);
  add_lab_command(*model, context, {"model", "describe"}, laboratory_help::kModelDescribe);
}

void add_predictor(CLI::App& app, Context& context) {
  auto* predictor = app.add_subcommand("predictor", laboratory_help::kPredictor);
  predictor->require_subcommand(1);
  add_lab_command(*predictor, context, {"predictor", "collect"},
                  laboratory_help::kPredictorCollect);
  add_lab_command(*predictor, context, {"predictor", "train"}, laboratory_help::kPredictorTrain);
  add_lab_command(*predictor, context, {"predictor", "predict"},
                  laboratory_help::kPredictorPredict);
  add_lab_command(*predictor, context, {"predictor", "evaluate"},
                  laboratory_help::kPredictorEvaluate);
}

void add_policy_laboratory(CLI::App& policy, Context& context) {
  add_lab_command(policy, context, {"policy", "train"}, laboratory_help::kPolicyTrain);
  add_lab_command(policy, context, {"policy", "evaluate"}, laboratory_help::kPolicyEvaluate);
}

void add_unit_laboratory(CLI::App& unit, Context& context) {
  add_lab_command(unit, context, {"unit", "rates"}, laboratory_help::kUnitRates);
}

}  // namespace tierpilot::tierctl

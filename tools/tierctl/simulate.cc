// Commands that run policies: tierctl becomes the program that has them (tools/lab).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>

#include "tools/cluster/program.h"
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
  add_lab_command(app, context, {"simulate"},
                  "run a workload under several policies on a described cluster");
}

void add_quality(CLI::App& app, Context& context) {
  auto* quality = app.add_subcommand("quality", "predicted losses of training jobs");
  quality->require_subcommand(1);
  add_lab_command(*quality, context, {"quality", "predict"},
                  "how well the losses of recorded runs are foretold from their beginning");
}

void add_model(CLI::App& app, Context& context) {
  auto* model = app.add_subcommand("model", "what a model is made of");
  model->require_subcommand(1);
  add_lab_command(*model, context, {"model", "describe"}, "the model card of an ONNX file");
}

void add_predictor(CLI::App& app, Context& context) {
  auto* predictor =
      app.add_subcommand("predictor", "what jobs will use of a unit, predicted and measured");
  predictor->require_subcommand(1);
  add_lab_command(*predictor, context, {"predictor", "collect"},
                  "train models of many architectures on one core, and measure what they use");
  add_lab_command(*predictor, context, {"predictor", "train"},
                  "predict use of a core, memory and run time of trainings from their model cards");
  add_lab_command(*predictor, context, {"predictor", "predict"},
                  "what a training will use of a core, its memory and its time, by its model card");
  add_lab_command(*predictor, context, {"predictor", "evaluate"},
                  "predictors on measurements of jobs that they were not trained on");
}

void add_policy_laboratory(CLI::App& policy, Context& context) {
  add_lab_command(policy, context, {"policy", "train"},
                  "train the dqn by simulation and write its weights");
  add_lab_command(policy, context, {"policy", "evaluate"},
                  "policies on a suite of simulated workloads, and a bound that none can beat");
}

void add_unit_laboratory(CLI::App& unit, Context& context) {
  add_lab_command(unit, context, {"unit", "rates"},
                  "failure rates of units from a record, and how well they would have foretold it");
}

}  // namespace tierpilot::tierctl

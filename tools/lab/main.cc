#include <CLI/CLI.hpp>

#include "tools/lab/command.h"
#include "tools/output/arguments.h"

int main(int argc, char** argv) {
  using namespace tierpilot;
  CLI::App app{"What tierctl does with policies by itself, without a cluster", "tierctl"};
  app.require_subcommand(1);
  lab::Context context;
  lab::add_simulate(app, context);
  auto* policy = app.add_subcommand("policy", "train and compare policies by simulation");
  policy->require_subcommand(1);
  lab::add_train(*policy, context);
  lab::add_evaluate(*policy, context);
  if (const auto code = parse_arguments(app, argc, argv, context.output)) return *code;
  return context.command();
}

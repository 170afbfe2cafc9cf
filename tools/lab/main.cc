#include <CLI/CLI.hpp>
#include <new>

#include "base/descriptors.h"
#include "base/process/end.h"
#include "tools/lab/command.h"
#include "tools/output/arguments.h"

namespace tierpilot {
namespace {

int run(int argc, char** argv) {
  CLI::App app{"What tierctl does with policies by itself, without a cluster", "tierctl"};
  app.require_subcommand(1);
  lab::Context context;
  lab::add_simulate(app, context);
  lab::add_quality(app, context);
  auto* policy = app.add_subcommand("policy", "train and compare policies by simulation");
  policy->require_subcommand(1);
  lab::add_train(*policy, context);
  lab::add_evaluate(*policy, context);
  auto* unit = app.add_subcommand("unit", "compute units and their failures");
  unit->require_subcommand(1);
  lab::add_rates(*unit, context);
  lab::add_model(app, context);
  lab::add_predictor(app, context);
  if (const auto code = parse_arguments(app, argc, argv, context.output)) return *code;
  try {
    return context.command();
  } catch (const std::bad_alloc&) {  // a run keeps some 300 bytes for each of its tasks
    return print_error(
        context.output,
        {ErrorCode::kExhausted, "the memory does not suffice: take fewer tasks, nodes or seeds"});
  }
}

}  // namespace
}  // namespace tierpilot

int main(int argc, char** argv) {
  tierpilot::occupy_standard_streams();
  tierpilot::end_process(tierpilot::run(argc, argv));
}

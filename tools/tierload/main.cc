// tierload: data-intensive work for tests and demonstrations, and a seeded workload of it.
#include <CLI/CLI.hpp>

#include "tools/output/arguments.h"
#include "tools/tierload/commands.h"

int main(int argc, char** argv) {
  using namespace tierpilot;
  CLI::App app{"Work over datasets, and seeded workloads of it", "tierload"};
  app.require_subcommand(1);
  tierload::Context context;
  tierload::add_kernel(app, context);
  tierload::add_plan(app, context);
  tierload::add_run(app, context);
  if (const auto code = parse_arguments(app, argc, argv, context.output)) return *code;
  return tierpilot::carry_out(context.output, context.command);
}

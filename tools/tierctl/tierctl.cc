#include "tools/tierctl/tierctl.h"

#include <CLI/CLI.hpp>

#include "tools/output/arguments.h"
#include "tools/tierctl/object.h"

namespace tierpilot::tierctl {

int run(int argc, const char* const* argv, Output output) {
  CLI::App app{"Operates a Tierpilot cluster", "tierctl"};
  app.require_subcommand(1);
  Context context{.output = output, .connect = {}, .command = {}};
  add_connect_options(app, context.connect);
  for (const auto add :
       {add_status, add_node, add_dataset, add_task, add_policy, add_history, add_backup,
        add_config, add_simulate, add_quality, add_unit, add_model, add_predictor})
    add(app, context);
  app.footer("Exit codes: 0 ok, 1 failed, 2 usage, 3 not found or not reachable, 4 degraded.");
  if (const auto code = parse_arguments(app, argc, argv, context.output)) return *code;
  return carry_out(context.output, context.command);
}

}  // namespace tierpilot::tierctl

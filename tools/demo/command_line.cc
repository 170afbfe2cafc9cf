#include "tools/demo/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tools/output/output.h"

namespace tierpilot::demo {

int parse_and_run(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& run) {
  app.set_version_flag("--version", fmt::format("{} {}", app.get_name(), TIERPILOT_VERSION));
  bool only_checks = false;
  app.add_flag("--check-options", only_checks, "end once the options are known to be right")
      ->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (only_checks) return kExitOk;
  const auto code = run();
  return code ? *code : print_error({}, code.error());
}

}  // namespace tierpilot::demo

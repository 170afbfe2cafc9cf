// What the programs that demonstrate something do with their command lines.
#pragma once

#include <functional>

#include "base/result.h"

namespace CLI {
class App;
}

namespace tierpilot::demo {

// Adds --version and --check-options, parses and calls `run`; prints what goes wrong. The program's
// exit code.
int parse_and_run(CLI::App& app, int argc, char** argv, const std::function<Result<int>()>& run);

}  // namespace tierpilot::demo

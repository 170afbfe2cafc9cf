// Command lines by CLI11 with the tools' manners: --version, -j, usage errors with exit code 2.
#pragma once

#include <optional>

#include "tools/output/output.h"

namespace CLI {
class App;
}

namespace tierpilot {

// Adds -j/--json (sets output.json) and --version, then parses. Returns the exit code when the
// program is to end now (help, version, usage error, all printed), nothing when it is to go on.
std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv,
                                   Output& output);

}  // namespace tierpilot

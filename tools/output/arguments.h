// Command lines by CLI11 with the tools' manners: --version, -j, usage errors with exit code 2.
#pragma once

#include <functional>
#include <optional>

#include "tools/output/output.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace tierpilot {

// Adds -j/--json (sets output.json) and --version, then parses. Returns the exit code when the
// program is to end now (help, version, usage error, all printed), nothing when it is to go on.
std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv,
                                   Output& output);

// The exit code of what the arguments asked for. What nobody thought of is an error of it, too, and
// no abort.
int carry_out(const Output& output, const std::function<int()>& command);

// What every option of a floating type is checked by: CLI::Range lets NaN pass, which no comparison
// refuses later. A test holds the tools to it (tests/unit/structure/number_options.py).
CLI::Validator number_between(double least, double most);
// CLI11 takes -1 for the greatest number without a sign, and so what is too large.
CLI::Validator whole_number();
// What names something by its number: CLI11 takes -1 for the greatest one.
CLI::Validator id_number();
CLI::Validator process_number();

}  // namespace tierpilot

// --help for people: "NUMBER (1 to 16)" in place of "UINT:UINT in [1 - 16]".
#pragma once

namespace CLI {
class App;
}

namespace tierpilot {

// Of the program and all its subcommands.
void use_readable_help(CLI::App& app);

}  // namespace tierpilot

// tierload's verbs: one add function per file; main.cc lists them. A verb's callback sets
// context.command, which main runs once the command line has been read.
#pragma once

#include <functional>

#include "tools/output/output.h"

namespace CLI {
class App;
}

namespace tierpilot::tierload {

struct Context {
  Output output;
  std::function<int()> command;  // returns an ExitCode
};

void add_kernel(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);

}  // namespace tierpilot::tierload

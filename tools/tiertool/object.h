// An object of tiertool's command line ("tier", "probe", "feature", ...) is one file with one add
// function; main.cc lists them all. `add` declares the object's verbs as CLI11 subcommands, and the
// callback of the chosen verb sets context.command, which main runs after the line has been parsed:
//
//   void add_tier(CLI::App& app, Context& context) {
//     auto* tier = app.add_subcommand("tier", "memory tiers of this machine");
//     tier->require_subcommand(1);
//     auto* show = tier->add_subcommand("show", "...");
//     show->callback([&context] { context.command = [&context] { return show_tiers(context); }; });
//   }
#pragma once

#include <functional>

#include "base/sysroot.h"
#include "daemon/topology/topology.h"
#include "tools/output/output.h"

namespace CLI {
class App;
}

namespace tierpilot::tiertool {

struct Context {
  Output output;
  Sysroot sysroot;               // --sysroot
  bool foreign_root = false;     // the sysroot is not this machine: nothing can be measured there
  DiscoverOptions discover;      // looks for no GPUs under a foreign root
  std::function<int()> command;  // returns an ExitCode
};

void add_tier(CLI::App& app, Context& context);
void add_probe(CLI::App& app, Context& context);
void add_feature(CLI::App& app, Context& context);
void add_prog(CLI::App& app, Context& context);
void add_map(CLI::App& app, Context& context);
void add_page(CLI::App& app, Context& context);
void add_heat(CLI::App& app, Context& context);
void add_move(CLI::App& app, Context& context);
void add_top(CLI::App& app, Context& context);
void add_swap(CLI::App& app, Context& context);
void add_gpu(CLI::App& app, Context& context);

}  // namespace tierpilot::tiertool

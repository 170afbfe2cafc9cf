// tiertool: looks at one node's memory tiers, probes and BPF programs, with or without a daemon.
#include <CLI/CLI.hpp>

#include "base/descriptors.h"
#include "base/log.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/object.h"

namespace {

using tierpilot::tiertool::Context;

// Every object there is, in the order of the help.
constexpr void (*kObjects[])(CLI::App&, Context&) = {
    tierpilot::tiertool::add_tier, tierpilot::tiertool::add_probe, tierpilot::tiertool::add_feature,
    tierpilot::tiertool::add_prog, tierpilot::tiertool::add_map,   tierpilot::tiertool::add_page,
    tierpilot::tiertool::add_heat, tierpilot::tiertool::add_move,  tierpilot::tiertool::add_top,
    tierpilot::tiertool::add_swap, tierpilot::tiertool::add_gpu,
};

}  // namespace

int main(int argc, char** argv) {
  tierpilot::occupy_standard_streams();
  Context context;
  CLI::App app{"Inspects the memory tiers of this machine: what they are, how fast, what moves.",
               "tiertool"};
  app.require_subcommand(1);
  const auto use_root = [&context](const std::string& root) {
    context.sysroot = tierpilot::Sysroot(root);
    context.foreign_root = true;
    context.discover.nvml_library.clear();
  };
  app.add_option_function<std::string>("--sysroot", use_root, "read /sys and /proc below DIR")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  for (const auto add : kObjects) add(app, context);
  if (const auto code = tierpilot::parse_arguments(app, argc, argv, context.output)) return *code;
  if (auto status = tierpilot::start_log("tiertool", "warning"); !status)
    return print_error(context.output, status.error());
  return carry_out(context.output, context.command);
}

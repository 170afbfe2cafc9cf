// tiertool prog: the BPF programs of this project that are loaded on this machine.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "daemon/probe/inventory/inventory.h"
#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const LoadedProgram& program) {
  ordered_json row{{"id", program.id},
                   {"name", program.name},
                   {"type", program.type},
                   {"attached", program.links > 0},
                   {"pids", program.holder_pids}};
  // The kernel counts runs only while somebody has the statistics turned on.
  const bool counted = program.run_count > 0;
  const std::string reason = "unavailable: never ran while BPF run time statistics were on";
  const auto some = [counted](uint64_t value) {
    return counted ? std::optional(static_cast<double>(value)) : std::nullopt;
  };
  set_or_unavailable(row, "run_count", some(program.run_count), reason);
  set_or_unavailable(row, "run_time_ns", some(program.run_time_ns), reason);
  set_or_unavailable(row, "mean_run_ns",
                     some(counted ? program.run_time_ns / program.run_count : 0), reason);
  row["missed_runs"] = program.missed_runs;
  return row;
}

int show_programs(const Context& context) {
  const auto programs = list_programs(context.sysroot);
  if (!programs) return print_error(context.output, programs.error());
  ordered_json rows = ordered_json::array();
  for (const auto& program : *programs) rows.push_back(to_json(program));
  return print(context.output, {{"programs", std::move(rows)}},
               {{.rows = "/programs",
                 .columns = {{"ID", "/id"},
                             {"NAME", "/name"},
                             {"TYPE", "/type"},
                             {"ATTACHED", "/attached"},
                             {"RUNS", "/run_count", Format::kNumber},
                             {"RUN NS", "/run_time_ns", Format::kNumber},
                             {"MEAN NS", "/mean_run_ns", Format::kNumber},
                             {"MISSED", "/missed_runs", Format::kNumber},
                             {"PIDS", "/pids"}},
                 .empty = "No BPF program of this project is loaded: no node daemon observes."}});
}

}  // namespace

void add_prog(CLI::App& app, Context& context) {
  auto* prog = app.add_subcommand("prog", "BPF programs that observe this machine");
  prog->require_subcommand(1);
  prog->add_subcommand("show", "loaded programs, what they cost, and who holds them")
      ->callback([&context] { context.command = [&context] { return show_programs(context); }; });
}

}  // namespace tierpilot::tiertool

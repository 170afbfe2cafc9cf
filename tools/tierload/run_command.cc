// tierload run: puts the workload on a cluster and says what it came to.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/cluster/connect_arguments.h"
#include "tools/cluster/program.h"
#include "tools/tierload/commands.h"
#include "tools/tierload/replay.h"
#include "tools/tierload/workload_arguments.h"

namespace tierpilot::tierload {
namespace {

struct Arguments {
  WorkloadOptions workload;
  ConnectOptions connect;
  std::string program;
  bool keep = false;
};

Result<ReplayResult> run(const Arguments& arguments) {
  auto workload = make_workload(arguments.workload);
  if (!workload) return tl::unexpected(workload.error());
  std::string program = arguments.program;
  if (program.empty()) {
    auto found = find_program("tierload");
    if (!found) return tl::unexpected(found.error());
    program = *found;
  }
  auto connection = ClusterConnection::open(arguments.connect);
  if (!connection) return tl::unexpected(connection.error());
  auto nodes = nodes_up(**connection);
  if (!nodes) return tl::unexpected(nodes.error());
  if (auto status = register_datasets(**connection, *workload, *nodes); !status)
    return tl::unexpected(status.error());
  auto result = replay(**connection, *workload, program, [](auto&) { return Status{}; });
  if (!result || arguments.keep) return result;
  if (auto status = remove_datasets(**connection, *workload); !status)
    return tl::unexpected(status.error());
  return result;
}

int run_and_print(const Context& context, const Arguments& arguments) {
  const auto result = run(arguments);
  if (!result) return print_error(context.output, result.error());
  for (const auto& task : result->tasks)
    if (!task.succeeded)
      *context.output.err << fmt::format("task {} ({}): {}\n", task.id, task.name, task.reason);
  auto value = summary_json(summarize(result->tasks));
  value["latest_submit_ms"] = result->latest_submit_ms;
  const int code =
      print(context.output, {{"summary", value}},
            {{.rows = "/summary",
              .columns = {{"Tasks", "/tasks", Format::kNumber},
                          {"Failed", "/failed", Format::kNumber},
                          {"Wait ms, mean", "/wait_ms/mean", Format::kNumber},
                          {"Wait ms, p99", "/wait_ms/p99", Format::kNumber},
                          {"Response ms, mean", "/response_ms/mean", Format::kNumber},
                          {"Response ms, p99", "/response_ms/p99", Format::kNumber},
                          {"Bytes served locally", "/local_byte_share", Format::kPercent},
                          {"Bytes evicted", "/evicted_bytes", Format::kBytes},
                          {"Latest submit ms", "/latest_submit_ms", Format::kNumber}}}});
  return code == kExitOk && value["failed"] != 0 ? int{kExitFailed} : code;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<Arguments>();
  auto* sub = app.add_subcommand("run", "run a seeded workload on a cluster");
  add_workload_options(*sub, arguments->workload);
  add_connect_options(*sub, arguments->connect);
  sub->add_option("--program", arguments->program,
                  "tierload as the nodes find it; default: this one")
      ->type_name("PATH");
  sub->add_flag("--keep", arguments->keep, "leave the datasets registered");
  sub->callback([&context, arguments] {
    context.command = [&context, arguments] { return run_and_print(context, *arguments); };
  });
}

}  // namespace tierpilot::tierload

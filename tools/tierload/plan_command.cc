// tierload plan: prints the workload that the same options would run.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/cluster/connect_arguments.h"
#include "tools/output/arguments.h"
#include "tools/tierload/commands.h"
#include "tools/tierload/workload_arguments.h"

namespace tierpilot::tierload {
namespace {

int plan(const Context& context, const WorkloadOptions& options) {
  const auto workload = make_workload(options);
  if (!workload) return print_error(context.output, workload.error());
  return print(context.output, workload_json(*workload),
               {{.title = "Datasets",
                 .rows = "/datasets",
                 .columns = {{"DATASET", "/name"}, {"SIZE", "/bytes", Format::kBytes}}},
                {.title = "Tasks",
                 .rows = "/tasks",
                 .columns = {{"TASK", "/name"},
                             {"ARRIVES ms", "/arrival_ms", Format::kNumber},
                             {"KERNEL", "/command/2"},
                             {"FLOAT OPS", "/float_operations", Format::kNumber},
                             {"INT OPS", "/int_operations", Format::kNumber},
                             {"DATASET", "/datasets/0/name"},
                             {"SECOND", "/datasets/1/name"}}}});
}

}  // namespace

void add_workload_options(CLI::App& app, WorkloadOptions& options) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    auto* option = app.add_option(name, value, help)->capture_default_str();
    if constexpr (std::is_same_v<decltype(value), double&>)
      option->check(number_between(0, 1e9).description(""));
  };
  add("--seed", options.seed, "the same seed gives the same workload");
  add("--tasks", options.tasks, "number of tasks");
  add("--datasets", options.datasets, "number of datasets");
  add_size(app, "--min-size", options.min_dataset_bytes, "smallest dataset (default 4MiB)");
  add_size(app, "--max-size", options.max_dataset_bytes, "largest dataset (default 32MiB)");
  add("--zipf", options.zipf_exponent, "skew of the datasets' popularity; 0: uniform");
  add("--write-share", options.write_share, "share of tasks that write");
  add("--second-share", options.second_share, "share of tasks that use two datasets");
  add("--rate", options.arrivals_per_s, "mean arrivals per second");
  add("--work", options.work, "scales the passes over the data");
  add_size(app, "--task-memory", options.task_memory_bytes,
           "memory limit of each task (default none)");
  add("--prefix", options.prefix, "of dataset names");
}

void add_plan(CLI::App& app, Context& context) {
  auto options = std::make_shared<WorkloadOptions>();
  auto* command = app.add_subcommand("plan", "print a seeded workload");
  add_workload_options(*command, *options);
  command->callback([&context, options] {
    context.command = [&context, options] { return plan(context, *options); };
  });
}

}  // namespace tierpilot::tierload

// tierload kernel: what a task runs. Prints one line of JSON with a checksum.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <bit>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/dataset_env.h"
#include "tools/output/arguments.h"
#include "tools/tierload/commands.h"
#include "tools/tierload/dataset_file.h"
#include "tools/tierload/kernels.h"

namespace tierpilot::tierload {
namespace {

struct KernelArguments {
  std::string kernel;
  std::vector<std::string> datasets;
  KernelParameters parameters;
};

Result<std::vector<DatasetFile>> open_datasets(const Kernel& kernel,
                                               const std::vector<std::string>& names) {
  std::vector<std::string> variables;
  for (const auto& name : names) variables.push_back(dataset_env_name(name));
  if (names.empty()) variables = dataset_variables();
  if (variables.empty())
    return fail(ErrorCode::kNotFound,
                "no datasets: the environment has no TIERPILOT_DATASET_<NAME>; run this as a task "
                "with datasets, or set such a variable to a file's path");
  std::vector<DatasetFile> files;
  for (size_t i = 0; i < variables.size(); ++i) {
    const bool last = i + 1 == variables.size();
    auto file = DatasetFile::open(variables[i],
                                  kernel.access == Kernel::Access::kWrite ||
                                      (kernel.access == Kernel::Access::kReadThenWrite && last));
    if (!file) return tl::unexpected(file.error());
    files.push_back(std::move(*file));
  }
  return files;
}

Result<nlohmann::ordered_json> run(const KernelArguments& arguments) {
  auto kernel = find_kernel(arguments.kernel);
  if (!kernel) return fail(ErrorCode::kInvalid, kernel.error().message);
  auto files = open_datasets(**kernel, arguments.datasets);
  if (!files) return tl::unexpected(files.error());
  std::vector<Region> regions;
  for (const auto& file : *files) regions.push_back({file.data(), file.bytes(), file.writable()});

  const auto start = std::chrono::steady_clock::now();
  auto result = run_kernel(**kernel, regions, arguments.parameters);
  if (!result) return tl::unexpected(result.error());
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
  nlohmann::ordered_json value{{"schema", 1},
                               {"kernel", arguments.kernel},
                               {"datasets", regions.size()},
                               {"passes", arguments.parameters.passes},
                               {"checksum", fmt::format("{:016x}", result->checksum)}};
  if ((*kernel)->float_checksum) value["value"] = std::bit_cast<double>(result->checksum);
  value["float_operations"] = result->operations.floats;
  value["int_operations"] = result->operations.ints;
  value["read_bytes"] = result->read_bytes;
  value["written_bytes"] = result->written_bytes;
  value["wall_ms"] = wall.count();
  return value;
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels()) names.emplace_back(kernel.name);
  return names;
}

std::string kernel_help() {
  std::string help = "Kernels:\n";
  for (const Kernel& kernel : kernels()) {
    help += fmt::format("  {:<8}{}", kernel.name, kernel.summary);
    if (!kernel.size_meaning.empty())
      help += fmt::format(" (--size: {}, default {})", kernel.size_meaning, kernel.default_size);
    help += '\n';
  }
  return help +
         "A dataset NAME is the file in $TIERPILOT_DATASET_<NAME>: upper case, '_' for all but "
         "letters and digits.";
}

}  // namespace

void add_kernel(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<KernelArguments>();
  auto* kernel = app.add_subcommand("kernel", "do one kernel's work over a task's datasets");
  kernel->footer(kernel_help());
  kernel->add_option("KERNEL", arguments->kernel, "which")
      ->required()
      ->check(CLI::IsMember(kernel_names()));
  kernel
      ->add_option("--dataset", arguments->datasets,
                   "name of a dataset, in order; without any: all that the environment names")
      ->allow_extra_args(false);
  kernel->add_option("--passes", arguments->parameters.passes, "how often to do the work")
      ->capture_default_str();
  kernel->add_option("--size", arguments->parameters.size, "the kernel's size; 0: its default")
      ->check(whole_number());
  kernel->add_option("--seed", arguments->parameters.seed, "for gather and update")
      ->check(whole_number())
      ->capture_default_str();
  kernel->callback([&context, arguments] {
    context.command = [&context, arguments] {
      const auto value = run(*arguments);
      if (!value) return print_error(context.output, value.error());
      *context.output.out << value->dump() << std::endl;
      return context.output.out->good() ? int{kExitOk} : int{kExitFailed};
    };
  });
}

}  // namespace tierpilot::tierload

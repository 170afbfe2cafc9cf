// tiertool gpu: who uses what of each GPU.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <thread>

#include "tools/output/arguments.h"
#include "tools/tiertool/gpu_reading.h"
#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

struct TopOptions {
  double interval_s = 2;
  size_t count = 0;  // 0: until the user ends it
};

std::vector<Table> tables() {
  return {{.title = "GPUs",
           .rows = "/gpus",
           .columns = {{"GPU", "/gpu"},
                       {"NAME", "/name"},
                       {"UUID", "/uuid"},
                       {"BUSY", "/utilisation", Format::kPercent},
                       {"MEMORY USED", "/memory_used_bytes", Format::kBytes},
                       {"OF", "/memory_total_bytes", Format::kBytes},
                       {"C", "/temperature_c", Format::kNumber},
                       {"W", "/power_w", Format::kNumber}},
           .empty = "the driver knows no GPU"},
          {.title = "Of what kind they are",
           .rows = "/gpus",
           .columns = {{"GPU", "/gpu"},
                       {"CAPABILITY", "/compute_capability", Format::kNumber},
                       {"CORES", "/cores", Format::kNumber},
                       {"SM MHZ", "/sm_clock_mhz", Format::kNumber},
                       {"MEMORY MHZ", "/memory_clock_mhz", Format::kNumber},
                       {"BUS BITS", "/bus_width_bits", Format::kNumber}},
           .empty = "the driver knows no GPU"},
          {.title = "Who computes on them",
           .rows = "/processes",
           .columns = {{"GPU", "/gpu"},
                       {"PID", "/pid"},
                       {"COMMAND", "/command"},
                       {"USER", "/user"},
                       {"TASK", "/task"},
                       {"MEMORY", "/memory_bytes", Format::kBytes},
                       {"SM", "/sm", Format::kPercent},
                       {"MPS", "/mps"}},
           .empty = "nobody"}};
}

Result<Nvml> open(const Context& context) {
  if (context.foreign_root)
    return fail(ErrorCode::kUnavailable,
                "the GPUs of another machine's files cannot be asked: leave out --sysroot");
  return Nvml::open(context.discover.nvml_library);
}

int print_use(const Context& context, ordered_json value) {
  const auto warnings = value["warnings"].get<std::vector<std::string>>();
  value.erase("warnings");
  return print(context.output, value, tables(), warnings);
}

int show_gpus(const Context& context) {
  const auto nvml = open(context);
  if (!nvml) return print_error(context.output, nvml.error());
  auto value = read_gpus(*nvml, context.sysroot);
  if (!value) return print_error(context.output, value.error());
  return print_use(context, std::move(*value));
}

int top(const Context& context, const TopOptions& options) {
  const auto nvml = open(context);
  if (!nvml) return print_error(context.output, nvml.error());
  const bool screen = !context.output.json && ::isatty(STDOUT_FILENO);
  auto& out = *context.output.out;
  int code = kExitOk;  // of the last look
  for (size_t done = 0; options.count == 0 || done < options.count; ++done) {
    if (done) std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    auto value = read_gpus(*nvml, context.sysroot);
    if (!value) return print_error(context.output, value.error());
    if (context.output.json) {
      ordered_json line{{"schema", 1}};
      line.update(*value);
      out << line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
      code = line["warnings"].empty() ? kExitOk : kExitDegraded;
    } else {
      out << (screen ? "\033[H\033[2J" : done ? "\n" : "");
      code = print_use(context, std::move(*value));
      if (code == kExitFailed) return code;
    }
    if (!out.flush())
      return print_error(context.output,
                         {ErrorCode::kIo, "standard output takes no more: is the disk full?"});
  }
  return code;
}

}  // namespace

void add_gpu(CLI::App& app, Context& context) {
  auto* gpu = app.add_subcommand("gpu", "who uses what of each GPU");
  gpu->require_subcommand(1);
  gpu->add_subcommand("show", "each GPU, and the processes that compute on it")
      ->callback([&context] { context.command = [&context] { return show_gpus(context); }; });
  auto options = std::make_shared<TopOptions>();
  auto* sub = gpu->add_subcommand("top", "the same again and again");
  sub->add_option("--interval", options->interval_s, "seconds between two looks")
      ->check(number_between(0.1, 3600.0))
      ->capture_default_str();
  sub->add_option("--count", options->count, "looks, then end (default: until Ctrl-C)")
      ->check(CLI::Range(1, 1'000'000));
  sub->callback([&context, options] {
    context.command = [&context, options] { return top(context, *options); };
  });
}

}  // namespace tierpilot::tiertool

// tierpilot-demo-quality: real training jobs on one node of this machine, their cores given out
// equally and then by the loss that they lower. Leaves nothing behind.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "base/bytes.h"
#include "policies/quality/allocator.h"
#include "tools/cluster/program.h"
#include "tools/demo/command_line.h"
#include "tools/demo/demo_cluster.h"
#include "tools/demo/layout.h"
#include "tools/demo/quality/allocator_run.h"
#include "tools/demo/quality/live_view.h"
#include "tools/demo/quality/quality_report.h"
#include "tools/demo/quality/recorded_curves.h"
#include "tools/demo/training_options.h"
#include "tools/demo/training_stage.h"
#include "tools/output/output.h"

namespace tierpilot::demo {
namespace {

constexpr uint32_t kUnitsPerCpu = 20;  // so that shares of a core are whole units
constexpr int64_t kLeaseMs = 3'000;    // reports come three times in it

struct Options : TrainingOptions {
  std::vector<std::string> allocators{"fair", "quality"};
  double gap_s = 3;
  std::string svg_file;
  std::string trainer;
  uint64_t seed = 0;
  std::string curves_folder;
};

LayoutOptions layout_options(const std::filesystem::path& folder,
                             const std::filesystem::path& fast_folder,
                             const std::string& allocator) {
  LayoutOptions where{.folder = folder / allocator,
                      .fast_folder = fast_folder / allocator,
                      .cpus = usable_cpus(),
                      .fast_budget_bytes = 8 * kMiB,
                      .slow_budget_bytes = 8 * kMiB,
                      .nodes = 1,
                      .seed = 1,
                      .weights = {},
                      .units = 0,
                      .lease_ms = kLeaseMs,
                      .policy = "least-loaded",
                      .coordinator_more = {},
                      .node_more = "[probe]\ncalibrate = false\npassive = false\n"};
  where.units = static_cast<uint32_t>(where.cpus.size()) * kUnitsPerCpu;
  where.coordinator_more = fmt::format("[elastic]\nallocator = \"{}\"\nperiod_s = 2\n", allocator);
  return where;
}

Result<AllocatorRun> run_one(const Options& options, const LayoutOptions& where,
                             const std::string& allocator, QualityView& view) {
  Progress progress(std::cout, isatty(STDOUT_FILENO) == 1);
  auto cluster = DemoCluster::start(make_layout(where), progress);
  if (!cluster) return tl::unexpected(cluster.error());
  progress.done(allocator + ": a node is up");
  view.begin(allocator);
  return run_allocator(**cluster, allocator, {options.script, options.trainer},
                       training_plans(options.scale, options.gap_s, options.seed),
                       {.all = where.units, .per_cpu = kUnitsPerCpu},
                       [&](double since_s, const auto& jobs) { view.show(since_s, jobs); });
}

Status write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  std::ofstream file(path);
  file << text;
  if (!file.flush()) return fail_errno(errno, fmt::format("'{}' cannot be written", path));
  return {};
}

// In the guarded process. What was measured before a failure is shown and written all the same.
int run_all(const Options& options, const std::filesystem::path& folder,
            const std::filesystem::path& fast_folder) {
  std::vector<AllocatorRun> runs;
  std::optional<Error> error;
  QualityView view(std::cout, isatty(STDOUT_FILENO) == 1,
                   static_cast<double>(usable_cpus().size()));
  for (const auto& allocator : options.allocators) {
    auto run = run_one(options, layout_options(folder, fast_folder, allocator), allocator, view);
    if (run) {
      runs.push_back(std::move(*run));
      continue;
    }
    error = run.error();
    break;
  }
  auto report = quality_report(runs);
  if (error) report["error"] = error->message;
  if (!runs.empty()) print_quality_report(std::cout, report);
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  auto written = write_file(options.json_file, report.dump(2, ' ', false, kReplace) + "\n");
  if (written && !runs.empty()) written = write_file(options.svg_file, quality_picture(runs));
  // They go the same way under every allocator.
  if (written && !runs.empty() && !options.curves_folder.empty())
    written = write_curves(options.curves_folder, runs.front().jobs, options.seed);
  if (!written) return print_error({}, written.error());
  if (error) return print_error({}, *error);
  size_t failed = 0;
  for (const auto& run : runs) {
    for (const auto& failure : run.failures) std::cerr << run.name << ": " << failure << '\n';
    failed += run.failures.size();
  }
  if (failed == 0) return kExitOk;
  return print_error({}, {ErrorCode::kUnavailable, fmt::format("{} jobs failed", failed)});
}

Result<int> run(Options options) {
  if (auto ready = prepare(options.script); !ready) return tl::unexpected(ready.error());
  const auto trainer = find_program("tierpilot-trainer");
  if (!trainer) return tl::unexpected(trainer.error());
  options.trainer = *trainer;
  for (const auto& allocator : options.allocators)
    if (auto made = quality::make_allocator(allocator); !made) return tl::unexpected(made.error());
  fmt::print("eight training jobs, one every {:.0f} s, on {} CPUs: {}\n", options.gap_s,
             usable_cpus().size(), fmt::join(options.allocators, ", then "));
  return run_on_stage([&](const auto& folder, const auto& fast_folder) {
    return run_all(options, folder, fast_folder);
  });
}

}  // namespace
}  // namespace tierpilot::demo

int main(int argc, char** argv) {
  using namespace tierpilot;
  demo::Options options;
  CLI::App app{"Trains eight models on this machine, their cores given out by several rules",
               "tierpilot-demo-quality"};
  app.add_option("--allocators", options.allocators, "in this order")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--svg", options.svg_file, "draw losses and cores over time into this file")
      ->type_name("FILE");
  app.add_option("--seed", options.seed, "of the jobs' data and first weights")
      ->check(CLI::Range(0U, 1'000'000U))
      ->capture_default_str();
  app.add_option("--curves", options.curves_folder,
                 "write each job's loss curve into this folder, for 'tierctl quality predict' and "
                 "simulations")
      ->type_name("FOLDER");
  add_training_options(app, options);
  demo::add_gap_option(app, options.gap_s);
  return demo::parse_and_run(app, argc, argv, [&] { return demo::run(std::move(options)); });
}

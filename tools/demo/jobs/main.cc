// tierpilot-demo-jobs: real training jobs on three nodes of this machine, one of whose units fails
// again and again, under several policies. Leaves nothing behind.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "base/bytes.h"
#include "base/data_file.h"
#include "tools/cluster/program.h"
#include "tools/demo/command_line.h"
#include "tools/demo/jobs/fake_gpus.h"
#include "tools/demo/jobs/gang_report.h"
#include "tools/demo/jobs/gang_run.h"
#include "tools/demo/layout.h"
#include "tools/demo/training_options.h"
#include "tools/demo/training_stage.h"
#include "tools/output/output.h"

namespace tierpilot::demo {
namespace {

constexpr size_t kNodes = 3;
constexpr uint32_t kUnits = 2;  // of each node
constexpr int64_t kLeaseMs = 3'000;
constexpr double kPatience_s = 300;  // of one policy
const BadUnit kBadUnit{.node = "n2", .cpu_unit = 0};
constexpr const char* kNodeOfBadGpu = "n3";

struct Options : TrainingOptions {
  std::vector<std::string> policies{"least-loaded", "expected-time", "ac"};
  std::string fake_driver;  // the folder of a library in place of NVML's; empty: no GPUs
  JobPrograms programs;
};

// What the least loaded nodes get is what `spread` does with gangs.
std::string coordinator_section(const std::string& policy) {
  auto section = fmt::format("[gang]\nquarantine_failures = 0\npolicy = \"{}\"\n",
                             policy == "least-loaded" ? "spread" : policy);
  if (policy == "ac")
    if (const auto weights = find_data_file("ac.weights"))
      section += fmt::format("weights = \"{}\"\n", weights->native());
  return section;
}

LayoutOptions layout_options(const std::filesystem::path& folder,
                             const std::filesystem::path& fast_folder, const std::string& policy) {
  LayoutOptions where{.folder = folder / policy,
                      .fast_folder = fast_folder / policy,
                      .cpus = usable_cpus(),
                      .fast_budget_bytes = 8 * kMiB,
                      .slow_budget_bytes = 32 * kMiB,
                      .nodes = kNodes,
                      .seed = 1,
                      .weights = {},
                      .units = kUnits,
                      .lease_ms = kLeaseMs,
                      .policy = "least-loaded",
                      .coordinator_more = coordinator_section(policy),
                      .node_more = "[probe]\ncalibrate = false\npassive = false\n"};
  return where;
}

void show(Progress& progress, const GangRun& run) {
  std::string line = fmt::format("{:<14} {:4.0f} s", run.name, run.wall_s);
  for (const auto& job : run.jobs) {
    line += fmt::format("  {} {}", job.name, job.state == "running" ? "" : job.state);
    if (job.state == "running" && job.iterations > 0)
      line += fmt::format("{} %", 100 * job.iteration / job.iterations);
    if (job.restarts > 0) line += fmt::format(" ({}x)", job.restarts);
  }
  if (run.xids > 0) line += fmt::format("  GPU of {}: {} Xids", kNodeOfBadGpu, run.xids);
  progress.show(line);
}

struct Runs {
  GangRun undisturbed;
  std::vector<GangRun> policies;
};

// The jobs without failures first, on the first policy's cluster, as nothing is learnt there.
Status run_policy(const Options& options, const LayoutOptions& where, const std::string& policy,
                  Progress& progress, Runs& runs) {
  auto layout = make_layout(where);
  const FakeGpus gpus(options.fake_driver, where.folder / "driver");
  const bool has_gpus = !options.fake_driver.empty();
  if (has_gpus)
    if (auto added = gpus.add_to(layout); !added) return added;
  auto cluster = DemoCluster::start(layout, progress);
  if (!cluster) return tl::unexpected(cluster.error());
  const auto plans = gang_plans(options.scale, has_gpus);
  const auto view = [&](const GangRun& run) { show(progress, run); };
  if (runs.policies.empty()) {
    auto run = run_gangs(**cluster, "undisturbed", options.programs, plans, {}, kPatience_s, view);
    if (!run) return tl::unexpected(run.error());
    progress.done(fmt::format("{:<14} {:.0f} s", "undisturbed", run->wall_s));
    runs.undisturbed = std::move(*run);
  }
  Failures failures{.unit = kBadUnit, .gpu = {}};
  if (has_gpus)
    failures.gpu =
        BadGpu{.node = kNodeOfBadGpu,
               .uuid = FakeGpus::uuid(kNodeOfBadGpu),
               .report_xid = [&](unsigned number) { gpus.report_xid(kNodeOfBadGpu, number); }};
  auto run = run_gangs(**cluster, policy, options.programs, plans, failures, kPatience_s, view);
  if (!run) return tl::unexpected(run.error());
  progress.done(fmt::format("{:<14} {:.0f} s, unit {}/cpu/{} failed {} times, {} Xids of a GPU",
                            policy, run->wall_s, kBadUnit.node, kBadUnit.cpu_unit, run->kills,
                            run->xids));
  runs.policies.push_back(std::move(*run));
  return {};
}

// In the guarded process. What was measured before a failure is shown and written all the same.
int run_all(const Options& options, const std::filesystem::path& folder,
            const std::filesystem::path& fast_folder) {
  Progress progress(std::cout, isatty(STDOUT_FILENO) == 1);
  Runs runs;
  Status status;
  for (const auto& policy : options.policies)
    if (status)
      status =
          run_policy(options, layout_options(folder, fast_folder, policy), policy, progress, runs);
  auto report = gang_report(runs.undisturbed, runs.policies);
  if (!status) report["error"] = status.error().message;
  if (!runs.policies.empty()) print_gang_report(std::cout, report);
  if (!options.json_file.empty()) {
    std::ofstream file(options.json_file);
    file << report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
    if (!file.flush())
      return print_error(
          {}, fail_errno(errno, fmt::format("'{}' cannot be written", options.json_file)).value());
  }
  if (!status) return print_error({}, status.error());
  const auto faults = gang_faults(report);
  if (faults.empty()) return kExitOk;
  return print_error({}, {ErrorCode::kUnavailable, fmt::format("{}", fmt::join(faults, "; "))});
}

Result<int> run(Options options) {
  if (auto ready = prepare(options.script); !ready) return tl::unexpected(ready.error());
  const auto trainer = find_program("tierpilot-trainer");
  if (!trainer) return tl::unexpected(trainer.error());
  options.programs = {.trainer = *trainer, .script = options.script};
  fmt::print("four training jobs on {} nodes of {} units each, {} CPUs; unit {}/cpu/{} fails: {}\n",
             kNodes, kUnits, usable_cpus().size(), kBadUnit.node, kBadUnit.cpu_unit,
             fmt::join(options.policies, ", then "));
  return run_on_stage([&](const auto& folder, const auto& fast_folder) {
    return run_all(options, folder, fast_folder);
  });
}

}  // namespace
}  // namespace tierpilot::demo

int main(int argc, char** argv) {
  using namespace tierpilot;
  demo::Options options;
  CLI::App app{
      "Trains models on this machine while a unit fails again and again, under several policies",
      "tierpilot-demo-jobs"};
  app.add_option("--policies", options.policies,
                 "in this order: least-loaded, or any that places gangs")
      ->delimiter(',')
      ->check(CLI::IsMember({"least-loaded", "expected-time", "ac", "first-fit", "best-fit",
                             "spread", "least-failures", "random", "best-of-100"}))
      ->capture_default_str();
  app.add_option(
         "--fake-driver", options.fake_driver,
         "where a library in place of NVML's is; each node then has a GPU that does as it is "
         "told, and one of them reports errors")
      ->check(CLI::ExistingDirectory)
      ->type_name("FOLDER");
  add_training_options(app, options);
  return demo::parse_and_run(app, argc, argv, [&] { return demo::run(std::move(options)); });
}

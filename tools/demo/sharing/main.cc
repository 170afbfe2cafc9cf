// tierpilot-demo-sharing: real training jobs that share this machine's cores, by several policies.
// Leaves nothing behind.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/bytes.h"
#include "base/clock.h"
#include "policies/sharing/card/card_reader.h"
#include "policies/sharing/live/share_policy.h"
#include "policies/sharing/predict/job_predictor.h"
#include "tools/demo/command_line.h"
#include "tools/demo/demo_cluster.h"
#include "tools/demo/layout.h"
#include "tools/demo/sharing/sharing_report.h"
#include "tools/demo/sharing/sharing_run.h"
#include "tools/demo/sharing/sharing_view.h"
#include "tools/demo/training_options.h"
#include "tools/demo/training_stage.h"
#include "tools/output/arguments.h"
#include "tools/output/output.h"

namespace tierpilot::demo {
namespace {

constexpr int64_t kLeaseMs = 3'000;   // reports come three times in it
constexpr double kPythonStart_s = 4;  // which no model card tells of

struct Options : TrainingOptions {
  Options() { scale = 0.85; }  // three policies in less than four minutes, on two cores
  std::vector<std::string> policies{"whole", "share-published", "share"};
  double gap_s = 2;
  double promise = 2.2;
  std::string predictor;
};

LayoutOptions layout_options(const std::filesystem::path& folder,
                             const std::filesystem::path& fast_folder, const Options& options,
                             const std::string& policy) {
  LayoutOptions where{.folder = folder / policy,
                      .fast_folder = fast_folder / policy,
                      .cpus = usable_cpus(),
                      .fast_budget_bytes = 256 * kMiB,
                      .slow_budget_bytes = 256 * kMiB,
                      .nodes = 1,
                      .seed = 1,
                      .weights = {},
                      .units = 1,
                      .lease_ms = kLeaseMs,
                      .policy = "least-loaded",
                      .coordinator_more = {},
                      .node_more = "[probe]\ncalibrate = false\npassive = false\n"};
  where.coordinator_more = fmt::format(
      "[sharing]\npolicy = \"{}\"\nperiod_s = 1\npreemption_grace_s = 5\npredictor = \"{}\"\n",
      policy, options.predictor);
  where.node_more += fmt::format("[sharing]\ncpus = \"{}\"\n", fmt::join(where.cpus, ","));
  return where;
}

Result<sharing::JobPredictor> read_predictor(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return fail(ErrorCode::kNotFound, fmt::format("'{}' cannot be read", path));
  return sharing::JobPredictor::read(text.str());
}

// Of those that are latency-sensitive, and of whose run something is known.
Result<std::map<std::string, double>> promises_for(const Options& options,
                                                   const std::vector<SharingPlan>& plans) {
  auto predictor = read_predictor(options.predictor);
  if (!predictor) return tl::unexpected(predictor.error());
  std::map<std::string, double> promises_s;
  for (const auto& plan : plans) {
    auto card = sharing::read_card(plan.card);
    if (!card) return tl::unexpected(card.error());
    const auto said = predictor->predict(*card, {.engine = "cpu"});
    if (plan.latency_sensitive && said.run_s > 0)
      promises_s[plan.name] = options.promise * (said.run_s + kPythonStart_s);
  }
  return promises_s;
}

class Stage {
 public:
  Stage(const Options& options, std::vector<SharingPlan> plans,
        std::map<std::string, double> promises_s)
      : options_(options), plans_(std::move(plans)), promises_s_(std::move(promises_s)) {}

  // In the guarded process. What was measured before a failure is shown and written all the same.
  int run_all(const std::filesystem::path& folder, const std::filesystem::path& fast_folder) {
    std::vector<SharingRun> runs;
    std::optional<Error> error;
    for (const auto& policy : options_.policies) {
      auto run = run_one(layout_options(folder, fast_folder, options_, policy), policy);
      if (!run) {
        error = run.error();
        break;
      }
      runs.push_back(std::move(*run));
    }
    auto report = sharing_report(runs);
    if (error) report["error"] = error->message;
    if (!runs.empty()) print_sharing_report(std::cout, report);
    if (auto written = write(report); !written) return print_error({}, written.error());
    if (error) return print_error({}, *error);
    return count_failures(runs);
  }

 private:
  Result<SharingRun> run_one(const LayoutOptions& where, const std::string& policy) {
    Progress progress(std::cout, isatty(STDOUT_FILENO) == 1);
    auto cluster = DemoCluster::start(make_layout(where), progress);
    if (!cluster) return tl::unexpected(cluster.error());
    progress.done(policy + ": a node is up");
    view_.begin(policy);
    return run_sharing(
        **cluster, policy, options_.script, plans_, promises_s_,
        static_cast<double>(where.cpus.size()), [&](double since_s, const auto& jobs) {
          view_.show(static_cast<double>(system_clock().wall_ms()) / 1e3, since_s, jobs);
        });
  }
  Status write(const nlohmann::ordered_json& report) const {
    if (options_.json_file.empty()) return {};
    std::ofstream file(options_.json_file);
    file << report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
    if (!file.flush())
      return fail_errno(errno, fmt::format("'{}' cannot be written", options_.json_file));
    return {};
  }
  static int count_failures(const std::vector<SharingRun>& runs) {
    size_t failed = 0;
    for (const auto& run : runs)
      for (const auto& job : run.jobs)
        if (job.state != "succeeded") {
          std::cerr << run.policy << ": " << job.plan.name << ": " << job.reason << '\n';
          ++failed;
        }
    if (failed == 0) return kExitOk;
    return print_error({}, {ErrorCode::kUnavailable, fmt::format("{} jobs failed", failed)});
  }

  const Options& options_;
  const std::vector<SharingPlan> plans_;
  const std::map<std::string, double> promises_s_;
  LiveShares view_{std::cout, isatty(STDOUT_FILENO) == 1};
};

Result<int> run(const Options& given) {
  Options options = given;
  options.predictor = std::filesystem::absolute(options.predictor).lexically_normal();
  if (auto ready = prepare(options.script); !ready) return tl::unexpected(ready.error());
  for (const auto& policy : options.policies)
    if (auto made = sharing::make_share_policy(policy, {}); !made)
      return tl::unexpected(made.error());
  auto plans = sharing_plans(options.script, options.scale, options.gap_s);
  if (!plans) return tl::unexpected(plans.error());
  auto promises_s = promises_for(options, *plans);
  if (!promises_s) return tl::unexpected(promises_s.error());
  fmt::print("{} training jobs, one every {:.0f} s, {} of them with a promise, on {} CPUs: {}\n",
             plans->size(), options.gap_s, promises_s->size(), usable_cpus().size(),
             fmt::join(options.policies, ", then "));
  std::cout << std::flush;
  Stage stage(options, std::move(*plans), std::move(*promises_s));
  return run_on_stage([&](const auto& folder, const auto& fast_folder) {
    return stage.run_all(folder, fast_folder);
  });
}

}  // namespace
}  // namespace tierpilot::demo

int main(int argc, char** argv) {
  using namespace tierpilot;
  demo::Options options;
  CLI::App app{"Trains ten models that share this machine's cores, by several policies",
               "tierpilot-demo-sharing"};
  app.add_option("--policies", options.policies, "in this order")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--promise", options.promise, "times what is predicted of a job")
      ->check(number_between(1.0, 100.0))
      ->capture_default_str();
  app.add_option("--predictor", options.predictor, "trained, of cores")
      ->required()
      ->type_name("FILE");
  add_training_options(app, options);
  demo::add_gap_option(app, options.gap_s);
  return demo::parse_and_run(app, argc, argv, [&] { return demo::run(options); });
}

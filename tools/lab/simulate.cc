// tierctl simulate: a workload under several policies on a cluster that is only described.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/data_file.h"
#include "policies/gang/learned/hosted_placers.h"
#include "policies/sim/comparison.h"
#include "tools/lab/command.h"
#include "tools/lab/plots.h"
#include "tools/lab/policies.h"
#include "tools/lab/progress_bar.h"
#include "tools/lab/scene.h"
#include "tools/lab/simulate_training.h"
#include "tools/output/laboratory_help.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

struct SimulateOptions {
  SceneNames scene;
  std::vector<std::string> policies = usual_policies(false);
  uint32_t seeds = 1;
  std::string baseline;
  PolicyOptions policy;
  std::string gang_policy = gang::kDefaultGangPolicy;
  std::string gang_weights;
  std::string plots;
  TrainingScene training;
};

Status check_baseline(const SimulateOptions& options) {
  if (!options.baseline.empty() && std::find(options.policies.begin(), options.policies.end(),
                                             options.baseline) == options.policies.end())
    return fail(ErrorCode::kInvalid,
                fmt::format("--baseline: '{}' is not among the policies", options.baseline));
  return {};
}

using Write = std::string (*)(double value, bool is_interval);

// Four digits, all those before the point.
std::string figure(double value, bool) {
  return std::abs(value) < 1e4 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}

std::string percent(double share, bool is_interval) {
  return is_interval ? fmt::format("{:.1f}", share * 100) : fmt::format("{:+.1f}", share * 100);
}

std::string with_interval(const ordered_json& estimate, Write write) {
  if (estimate["mean"].is_null()) return "-";
  auto text = write(estimate["mean"], false);
  if (!estimate["ci95"].is_null()) text += " ± " + write(estimate["ci95"], true);
  return text;
}

// The same rows for people: an estimate and its interval are one cell.
ordered_json rows_for_people(const ordered_json& rows, Write write) {
  auto shown = rows;
  for (auto& row : shown)
    for (auto& [key, value] : row.items())
      if (value.is_object()) value = with_interval(value, write);
  return shown;
}

const std::vector<Column> kTimes{
    {"POLICY", "/policy"},         {"MEAN WAIT s", "/wait_mean_s"},
    {"P99 WAIT s", "/wait_p99_s"}, {"MEAN RESPONSE s", "/response_mean_s"},
    {"P50 s", "/response_p50_s"},  {"P99 s", "/response_p99_s"},
    {"REWARD", "/reward_mean"},    {"UTILISATION", "/utilisation"},
    {"FAIRNESS", "/fairness"}};
const std::vector<Column> kBytes{{"POLICY", "/policy"},
                                 {"SEEDS", "/seeds", Format::kNumber},
                                 {"SUCCEEDED", "/succeeded", Format::kNumber},
                                 {"FAILED", "/failed", Format::kNumber},
                                 {"REJECTED", "/rejected", Format::kNumber},
                                 {"UNFINISHED", "/unfinished", Format::kNumber},
                                 {"RESTARTS", "/restarts", Format::kNumber},
                                 {"HOLDS", "/holds", Format::kNumber},
                                 {"HIT", "/hit_bytes/mean", Format::kBytes},
                                 {"PROMOTED", "/promoted_bytes/mean", Format::kBytes},
                                 {"FETCHED", "/fetched_bytes/mean", Format::kBytes},
                                 {"EVICTED", "/evicted_bytes/mean", Format::kBytes},
                                 {"WRITTEN", "/evicted_written_bytes/mean", Format::kBytes}};
const std::vector<Column> kDifferences{{"POLICY", "/policy"},
                                       {"MEAN WAIT %", "/wait_mean_s"},
                                       {"MEAN RESPONSE %", "/response_mean_s"},
                                       {"P99 RESPONSE %", "/response_p99_s"},
                                       {"REWARD %", "/reward_mean"}};

int show(const Output& output, ordered_json value, const std::string& baseline, uint32_t seeds) {
  std::vector<std::string> warnings;
  for (const auto& row : value["policies"])
    for (const char* what : {"failed", "rejected", "unfinished"})
      if (const auto count = row[what].get<uint64_t>(); count > 0)
        warnings.push_back(
            fmt::format("{}: {}", row["policy"].get<std::string>(), left_out(what, count)));
  if (output.json) return print(output, value, {}, warnings);
  value["times"] = rows_for_people(value["policies"], figure);
  value["differences"] = rows_for_people(value["differences"], percent);
  std::vector<Table> tables{
      {.title = seeds > 1 ? "Means over seeds, with 95 % confidence intervals" : "One seed",
       .rows = "/times",
       .columns = kTimes},
      {.title = "Tasks of all seeds, and bytes of one", .rows = "/policies", .columns = kBytes}};
  if (!value["differences"].empty())
    tables.push_back({.title = fmt::format("Against {}, paired by seed", baseline),
                      .rows = "/differences",
                      .columns = kDifferences});
  const int code = print(output, value, tables, warnings);
  *output.out << trace_note(value);
  return code;
}

auto gang_placers(const SimulateOptions& options) {
  return [&options](uint64_t seed) {
    return gang::hosted_placers().make(
        options.gang_policy, gang::PlacerOrigin{.seed = seed, .weights = options.gang_weights});
  };
}

Result<ordered_json> simulated(const SimulateOptions& options, const sim::PlayerMaker& make) {
  const auto scene = open_scene(options.scene);
  if (!scene) return tl::unexpected(scene.error());
  const auto& [cluster, source] = *scene;
  if (auto status = open_plots(options.plots); !status) return tl::unexpected(status.error());
  ProgressBar bar(stderr, isatty(STDERR_FILENO) == 1);
  const auto runs = sim::compare(cluster, source,
                                 {.policies = options.policies,
                                  .seeds = options.seeds,
                                  .make_player = make,
                                  .make_gang_placer = gang_placers(options),
                                  .progress = [&](double share) { return bar.show(share); }});
  bar.clear();
  if (!runs) return tl::unexpected(runs.error());
  if (!options.plots.empty())
    if (auto status = write_run_plots(cluster, *runs, options.plots); !status)
      return tl::unexpected(status.error());
  ordered_json value{
      {"cluster",
       {{"name", cluster.name}, {"nodes", cluster.node_count()}, {"units", cluster.unit_count()}}},
      {"workload", options.scene.workload},
      {"baseline", options.baseline}};
  if (source.summary) value["trace"] = trace_json(*source.summary);
  value.update(sim::comparison_json(*runs, options.baseline));
  return value;
}

int run(const Context& context, SimulateOptions options) {
  const auto policies = open_policies(options.policies, "--policy", options.policy);
  const Status wrong = policies ? check_baseline(options) : tl::unexpected(policies.error());
  if (!wrong) return refuse(context.output, wrong.error());
  if (options.gang_weights.empty())
    if (const auto shipped = find_data_file("ac.weights")) options.gang_weights = *shipped;
  if (const auto placer = gang_placers(options)(1); !placer)
    return refuse(context.output,
                  Error{placer.error().code, "--gang-policy: " + placer.error().message});
  if (options.baseline.empty()) options.baseline = options.policies.front();
  auto value = simulated(options, policies->maker());
  if (!value) return print_error(context.output, value.error());
  return show(context.output, std::move(*value), options.baseline, options.seeds);
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("simulate", laboratory_help::kSimulate);
  auto options = std::make_shared<SimulateOptions>();
  auto* workload = add_scene_options(*command, options->scene);
  auto* curves = add_training_scene(*command, options->training)->excludes(workload);
  command->get_option("--cluster")->remove_needs(workload);
  auto* policy = command->add_option("--policy", options->policies, "policies to compare")
                     ->delimiter(',')
                     ->type_name("NAME,...")
                     ->capture_default_str();
  add_policy_options(*command, options->policy);
  command
      ->add_option("--gang-policy", options->gang_policy,
                   "which units gangs get, under every policy")
      ->type_name("NAME")
      ->capture_default_str();
  command
      ->add_option("--gang-weights", options->gang_weights,
                   "weights of that policy, if it learned (default: the shipped ones)")
      ->type_name("FILE");
  command->add_option("--seeds", options->seeds, "runs of each policy, with seeds 1 to N")
      ->check(CLI::Range(1U, 10'000U))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--baseline", options->baseline, "compare with this policy (default: the first)")
      ->type_name("NAME");
  command
      ->add_option("--plots", options->plots,
                   "write queue length, utilisation and responses as SVG")
      ->type_name("FOLDER");
  for (const char* of_workloads : {"--trace-options", "--baseline", "--plots", "--learn",
                                   "--weights", "--gang-policy", "--gang-weights"})
    curves->excludes(command->get_option(of_workloads));
  command->callback([&context, options, policy, curves] {
    if (options->scene.workload.empty() && curves->count() == 0)
      throw CLI::RequiredError("--workload or --curves");
    context.command = [&context, options, policy] {
      auto& training = options->training;
      if (training.curves.empty()) return run(context, *options);
      training.cluster = options->scene.cluster;
      training.seeds = options->seeds;
      if (policy->count() > 0) training.allocators = options->policies;
      return simulate_training(context.output, training);
    };
  });
}

}  // namespace tierpilot::lab

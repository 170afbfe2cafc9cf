#include "tools/lab/gangs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "policies/learning/saved_bytes.h"
#include "policies/sim/gang/fleet_record.h"
#include "policies/sim/gang/training_comparison.h"
#include "tools/cluster/program.h"
#include "tools/lab/gang_rows.h"
#include "tools/lab/gang_tables.h"
#include "tools/lab/progress_bar.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

Result<std::shared_ptr<const gang::AcNet>> load_ac(const std::string& weights) {
  std::filesystem::path file = weights;
  if (weights.empty()) {
    auto shipped = find_data_file("ac.weights");
    if (!shipped) return tl::unexpected(shipped.error());
    file = *shipped;
  }
  const auto text = load_bytes(file);
  if (!text) return tl::unexpected(text.error());
  auto net = gang::read_ac_weights(*text, file.string());
  if (!net) return tl::unexpected(net.error());
  return std::make_shared<const gang::AcNet>(std::move(*net));
}

Result<gang::GangSuite> suite_of(const GangOptions& options) {
  auto suite = gang::gang_suite(options.max_units);
  suite.costs.repair_h = options.repair_h;
  suite.costs.restart_h = options.restart_h;
  if (options.policies.empty())
    suite.policies.push_back(gang::kAc);
  else
    suite.policies = options.policies;
  suite.first_seed = options.first_seed;
  suite.seeds = options.seeds.value_or(suite.seeds);
  if (!options.trace.empty()) {
    auto jobs = gang::trace_jobs(options.trace, gang::TraceHalf::kSecond);
    if (!jobs) return tl::unexpected(jobs.error());
    suite.trace = std::move(*jobs);
    for (auto& cell : suite.cells) cell.from_trace = true;
  }
  if (options.record.empty()) return suite;
  auto record = gang::read_fleet_record(options.record, options.record_nodes, options.repair_h);
  if (!record) return tl::unexpected(record.error());
  return gang::replay_suite(std::make_shared<const gang::FleetRecord>(std::move(*record)),
                            std::move(suite));
}

// What others are held against: the first policy where it is not among those that run.
std::string rival_among(const gang::GangSuite& suite, const std::string& wanted) {
  const auto& all = suite.policies;
  return std::count(all.begin(), all.end(), wanted) > 0 ? wanted : all.front();
}

Result<std::vector<gang::GangRun>> run(const gang::GangSuite& suite,
                                       const gang::PlacerMaker& make_policy,
                                       const GangOptions& options) {
  ProgressBar bar(stderr, isatty(STDERR_FILENO) == 1);
  const auto threads = options.threads.value_or(std::max(1U, std::thread::hardware_concurrency()));
  auto runs = gang::run_gangs(suite, make_policy, threads, [&](double share) { bar.show(share); });
  bar.clear();
  return runs;
}

int compare_training(const Output& output, const GangOptions& options) {
  const bool published = options.compared == gang::kAcPublished;
  auto suite = gang::compared_suite(published);
  if (!options.policies.empty()) suite.policies = options.policies;
  suite.costs.repair_h = options.repair_h;
  suite.costs.restart_h = options.restart_h;
  suite.first_seed = options.first_seed;
  suite.seeds = options.seeds.value_or(suite.seeds);
  const auto net = load_ac(options.weights);
  if (!net) return print_error(output, net.error());
  const auto runs =
      run(suite,
          gang::compared_maker(suite, {.simulated = *net,
                                       .settings = {.rounds = 60, .scenes = 16, .rate = 3e-3F},
                                       .workloads = options.workloads,
                                       .published = options.published}),
          options);
  if (!runs) return print_error(output, runs.error());
  const auto rival = rival_among(suite, published ? "published-10" : gang::kAc);
  ordered_json value{{"suite", "gangs"}, {"seeds", suite.seeds}, {"policies", suite.policies}};
  value["sums"] = gang_sums_json(*runs, suite, rival, [](const auto&) { return "all three"; });
  for (auto& row : gang_sums_json(*runs, suite, rival, [](const gang::GangCell& cell) {
         return gang::failure_setting_name(cell.setting);
       }))
    value["sums"].push_back(std::move(row));
  if (output.json) return print(output, value, {});
  print_comparison_table(output, value);
  return kExitOk;
}

int evaluate_suite(const Output& output, const GangOptions& options) {
  const auto suite = suite_of(options);
  if (!suite) return print_error(output, suite.error());
  const auto net = load_ac(options.weights);
  if (!net) return print_error(output, net.error());
  const auto runs =
      run(*suite, gang::placer_maker(*suite, *net, options.published, options.workloads), options);
  if (!runs) return print_error(output, runs.error());
  ordered_json value{{"suite", "gangs"}, {"seeds", suite->seeds}, {"policies", suite->policies}};
  value["rows"] = gang_rows_json(*runs, *suite);
  if (options.record.empty()) {
    value["overall"] = gang_overall_json(value["rows"], *suite);
    value["goals"] = gang_goals_json(*runs, *suite);
  } else {
    value["sums"] = gang_sums_json(*runs, *suite, rival_among(*suite, "fewest-faults"), jobs_name);
  }
  if (output.json) return print(output, value, {});
  if (options.record.empty())
    print_gang_tables(output, std::move(value));
  else
    print_replay_tables(output, std::move(value));
  return kExitOk;
}

}  // namespace

int evaluate_gangs(const Output& output, const GangOptions& options) {
  return options.compared.empty() ? evaluate_suite(output, options)
                                  : compare_training(output, options);
}

}  // namespace tierpilot::lab

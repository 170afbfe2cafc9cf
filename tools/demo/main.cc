// tierpilot-demo: one coordinator and three nodes on this machine, and the same workload under each
// policy. Leaves nothing behind.
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <set>

#include "base/bytes.h"
#include "base/data_file.h"
#include "tools/cluster/program.h"
#include "tools/demo/command_line.h"
#include "tools/demo/demo_cluster.h"
#include "tools/demo/guardian.h"
#include "tools/demo/layout.h"
#include "tools/demo/policy_run.h"
#include "tools/demo/report.h"
#include "tools/demo/rounds.h"
#include "tools/demo/runtime_folder.h"
#include "tools/output/arguments.h"
#include "tools/output/output.h"

namespace tierpilot::demo {
namespace {

constexpr size_t kNodes = 3;
constexpr uint64_t kFastBudget = 96 * kMiB;  // of each node, where /dev/shm has room for it
constexpr uint64_t kLeastFastBudget = 16 * kMiB;
constexpr uint64_t kSlowBudget = 2048 * kMiB;
constexpr double kBusyLoad = 0.5;  // per CPU, before anything of ours runs
constexpr int64_t kGraceMs = 8'000;
constexpr const char* kFastParent = "/dev/shm";
constexpr const char* kLearner = "dqn";
constexpr const char* kColdRow = "dqn (cold)";
// What follows in the section of the dqn, and behind it. None: more experiences than a run has.
const std::map<std::string, std::string> kLearning{
    {"bounded", ""},
    {"unbounded", "\n[training]\nnice = 0\ncpu_share = 1.0\n"},
    {"none",
     "train_start = 16384\nreplay_capacity = 16384\nepsilon = 0.0\n\n[guard]\non = false\n"}};

struct Options {
  uint64_t seed = 1;
  uint32_t rounds = 5;
  uint32_t tasks = 100;  // of each policy in each round
  uint32_t datasets = 24;
  double seconds = 4;  // in which they arrive
  double work = 1;
  std::vector<std::string> policies{"random", "least-loaded", "locality-greedy", "dqn"};
  bool cold = true;  // also a run of the dqn that starts without weights
  std::string learning = "bounded";
  std::string json_file;
};

// Processes that ran or waited for a CPU, on average over the last minute.
double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

Result<uint64_t> free_bytes(const std::filesystem::path& folder) {
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0)
    return fail_errno(errno, fmt::format("'{}'", folder.string()));
  return uint64_t{info.f_bavail} * info.f_frsize;
}

// A fifth of /dev/shm stays free.
Result<uint64_t> fast_budget() {
  const auto free = free_bytes(kFastParent);
  if (!free) return free;
  const uint64_t budget = std::min(kFastBudget, *free / 5 * 4 / kNodes / kMiB * kMiB);
  if (budget < kLeastFastBudget)
    return fail(ErrorCode::kExhausted,
                fmt::format("{} has {} free; the nodes' fast tiers need at least {}", kFastParent,
                            format_bytes(*free), format_bytes(kLeastFastBudget * kNodes * 5 / 4)));
  return budget;
}

// Datasets from a 24th to a third of a node's fast tier: together more than all of them hold.
Result<tierload::Workload> workload_for(const Options& options, uint64_t budget, uint32_t round) {
  return tierload::make_workload({.seed = options.seed + round,
                                  .tasks = options.tasks,
                                  .datasets = options.datasets,
                                  .min_dataset_bytes = budget / 24,
                                  .max_dataset_bytes = budget / 3,
                                  .arrivals_per_s = options.tasks / options.seconds,
                                  .work = options.work,
                                  .prefix = "demo"});
}

uint64_t total_bytes(const tierload::Workload& workload) {
  return std::accumulate(workload.datasets.begin(), workload.datasets.end(), uint64_t{0},
                         [](uint64_t sum, const auto& dataset) { return sum + dataset.bytes; });
}

Status check_disk(const std::filesystem::path& folder, const tierload::Workload& workload) {
  const auto free = free_bytes(folder);
  if (!free) return tl::unexpected(free.error());
  const uint64_t needed = total_bytes(workload) * (kNodes + 1);
  if (*free >= needed) return {};
  return fail(ErrorCode::kExhausted,
              fmt::format("'{}' has {} free; the nodes' slow tiers need {}; set TMPDIR to a folder "
                          "with room",
                          folder.string(), format_bytes(*free), format_bytes(needed)));
}

struct Stage {
  const Options& options;
  const Layout& layout;
  const Layout& cold_layout;                      // of a second cluster, after the first one
  const std::vector<tierload::Workload>& rounds;  // the same for every policy
  RunFacts facts;
};

// By policy, in the order in which they were asked for; a round may be missing after an error.
using Rounds = std::vector<std::vector<PolicyRun>>;

Status run_round(DemoCluster& cluster, const std::vector<std::string>& policies,
                 const tierload::Workload& workload, size_t round, const std::string& program,
                 Progress& progress, Rounds& runs) {
  for (const auto& policy : order_of_round(policies, round)) {
    auto run = run_policy(cluster, policy, workload, program, progress);
    if (!run) return tl::unexpected(run.error());
    progress.done(
        fmt::format("round {}  {:<16} {} tasks in {:.1f} s, {} failed, response {:.1f} ms",
                    round + 1, policy, run->summary.tasks, run->wall_s, run->summary.failed,
                    run->summary.response_ms ? run->summary.response_ms->mean : 0));
    const auto place = std::find(policies.begin(), policies.end(), policy) - policies.begin();
    runs[static_cast<size_t>(place)].push_back(std::move(*run));
  }
  return {};
}

Status run_policies(const Stage& stage, const Layout& layout,
                    const std::vector<std::string>& policies, size_t rounds, Progress& progress,
                    Rounds& runs, nlohmann::ordered_json& tiers) {
  const auto program = find_program("tierload");
  if (!program) return tl::unexpected(program.error());
  auto cluster = DemoCluster::start(layout, progress);
  if (!cluster) return tl::unexpected(cluster.error());
  auto measured = (*cluster)->tiers();
  if (!measured) return tl::unexpected(measured.error());
  tiers = *measured;
  progress.done(
      fmt::format("{} nodes are up, {} memory tiers measured", layout.nodes.size(), tiers.size()));
  for (size_t round = 0; round < rounds; ++round)
    if (auto status =
            run_round(**cluster, policies, stage.rounds[round], round, *program, progress, runs);
        !status)
      return status;
  return {};
}

void add_pooled(const Rounds& rounds, std::vector<PolicyRun>& runs) {
  for (const auto& of_policy : rounds)
    if (!of_policy.empty()) runs.push_back(pooled(of_policy));
}

// The learner learns from the tasks of every policy: only a cluster of its own is a cold start.
Status run_all(const Stage& stage, Progress& progress, std::vector<PolicyRun>& runs,
               nlohmann::ordered_json& tiers) {
  const auto& policies = stage.options.policies;
  Rounds rounds(policies.size());
  const auto done =
      run_policies(stage, stage.layout, policies, stage.rounds.size(), progress, rounds, tiers);
  add_pooled(rounds, runs);
  if (!done) return done;
  if (!stage.options.cold ||
      std::find(policies.begin(), policies.end(), kLearner) == policies.end())
    return {};
  progress.done("a second cluster, where the dqn starts cold: without weights, the first to place");
  nlohmann::ordered_json same_tiers;
  Rounds cold(1);
  auto status = run_policies(stage, stage.cold_layout, {kLearner}, 1, progress, cold, same_tiers);
  add_pooled(cold, runs);
  if (status) runs.back().name = kColdRow;
  return status;
}

// In the guarded process. Whatever was measured before a failure is shown and written all the same.
int run_stage(const Stage& stage) {
  std::ofstream json;
  if (!stage.options.json_file.empty()) {
    json.open(stage.options.json_file);
    if (!json)
      return print_error(
          {}, fail_errno(errno, fmt::format("'{}' cannot be written", stage.options.json_file))
                  .value());
  }
  Progress progress(std::cout, isatty(STDOUT_FILENO) == 1);
  std::vector<PolicyRun> runs;
  auto tiers = nlohmann::ordered_json::array();
  const auto status = run_all(stage, progress, runs, tiers);
  if (!status) progress.done("stopped");
  auto report = report_json(stage.facts, tiers, runs);
  if (!status) report["error"] = status.error().message;
  if (!runs.empty()) print_report(std::cout, report);
  if (json.is_open()) {
    json << report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
    if (!json.flush())
      return print_error({}, {ErrorCode::kIo, fmt::format("'{}' cannot be written in full",
                                                          stage.options.json_file)});
  }
  if (!status) {
    print_error({}, status.error());
    return kExitFailed;
  }
  size_t failed = 0;
  for (const auto& run : runs) {
    for (const auto& failure : run.failures) std::cerr << run.name << ": " << failure << '\n';
    failed += run.failures.size();
  }
  if (failed == 0) return kExitOk;
  return print_error({}, {ErrorCode::kUnavailable, fmt::format("{} tasks failed", failed)});
}

// Of each round.
Result<std::vector<tierload::Workload>> workloads(const Options& options, uint64_t budget,
                                                  const std::filesystem::path& disk) {
  std::vector<tierload::Workload> rounds;
  for (uint32_t round = 0; round < options.rounds; ++round) {
    auto workload = workload_for(options, budget, round);
    if (!workload) return tl::unexpected(workload.error());
    if (auto status = check_disk(disk, *workload); !status) return tl::unexpected(status.error());
    rounds.push_back(std::move(*workload));
  }
  return rounds;
}

void announce(const RunFacts& facts) {
  fmt::print(
      "{} nodes {} {} CPUs; {} rounds of {} tasks over {} datasets ({}), {} of fast memory a "
      "node\n",
      facts.nodes, facts.cpus < facts.nodes ? "share" : "on", facts.cpus, facts.rounds, facts.tasks,
      facts.datasets, format_bytes(facts.dataset_bytes), format_bytes(facts.fast_budget_bytes));
  if (facts.load_at_start > kBusyLoad * static_cast<double>(facts.cpus))
    fmt::print(
        "note: this machine is busy with other work (load {:.1f} on {} CPUs), which disturbs "
        "what is measured here\n",
        facts.load_at_start, facts.cpus);
}

Result<int> run(const Options& options) {
  const auto disk = disk_folder();
  RuntimeFolder::remove_stale(disk);
  RuntimeFolder::remove_stale(kFastParent);
  const auto budget = fast_budget();
  if (!budget) return tl::unexpected(budget.error());
  const auto rounds = workloads(options, *budget, disk);
  if (!rounds) return tl::unexpected(rounds.error());

  Guardian guardian;
  auto folder = RuntimeFolder::create(disk);
  if (!folder) return tl::unexpected(folder.error());
  auto fast_folder = RuntimeFolder::create(kFastParent);
  if (!fast_folder) return tl::unexpected(fast_folder.error());
  const auto cpus = usable_cpus();
  auto weights = find_data_file("dqn.weights");
  if (!weights) return tl::unexpected(weights.error());
  LayoutOptions where{.folder = folder->path(),
                      .fast_folder = fast_folder->path(),
                      .cpus = cpus,
                      .fast_budget_bytes = *budget,
                      .slow_budget_bytes = kSlowBudget,
                      .nodes = kNodes,
                      .seed = options.seed,
                      .weights = *weights,
                      .coordinator_more = kLearning.at(options.learning)};
  const Layout layout = make_layout(where);
  where.folder /= "cold";
  where.fast_folder /= "cold";
  where.weights.clear();
  const Layout cold_layout = make_layout(where);
  const Stage stage{options,
                    layout,
                    cold_layout,
                    *rounds,
                    {.seed = options.seed,
                     .nodes = kNodes,
                     .cpus = cpus.size(),
                     .rounds = rounds->size(),
                     .tasks = rounds->front().tasks.size(),
                     .datasets = rounds->front().datasets.size(),
                     .dataset_bytes = total_bytes(rounds->front()),
                     .fast_budget_bytes = *budget,
                     .load_at_start = load_average()}};
  announce(stage.facts);
  const int code = guardian.run([&] { return run_stage(stage); }, kGraceMs);
  if (code > 128)
    fmt::print(stderr, "\nstopped by a signal; all that was started has been ended\n");
  return code;
}

Status check_policies(const std::vector<std::string>& policies) {
  const std::set<std::string> unique(policies.begin(), policies.end());
  if (unique.size() == policies.size()) return {};
  return fail(ErrorCode::kInvalid, "--policies: a policy is named twice; each runs once");
}

}  // namespace
}  // namespace tierpilot::demo

int main(int argc, char** argv) {
  using namespace tierpilot;
  demo::Options options;
  CLI::App app{"Runs a small cluster on this machine and compares placement policies",
               "tierpilot-demo"};
  app.add_option("--rounds", options.rounds,
                 "in each every policy runs once, with the same tasks; another one is the first")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  app.add_option("--tasks", options.tasks, "tasks of each policy in each round")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  app.add_option("--datasets", options.datasets, "datasets")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "in which these tasks arrive")
      ->check(number_between(0.1, 86'400.0))
      ->capture_default_str();
  app.add_option("--work", options.work, "scales each task's work")
      ->check(number_between(0.01, 100.0))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the workload and of the policies")
      ->check(CLI::Range(int64_t{0}, INT64_MAX))
      ->capture_default_str();
  app.add_option("--policies", options.policies, "in this order")
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("!--no-cold", options.cold,
               "leave out the second cluster, where the dqn starts without weights");
  app.add_option(
         "--learning", options.learning,
         "of the dqn: bounded (as shipped), unbounded (its thread takes what it can), or none "
         "(it decides as its weights say, does not explore and answers to no guard)")
      ->check(CLI::IsMember({"bounded", "unbounded", "none"}))
      ->capture_default_str();
  app.add_option("--json", options.json_file, "write everything shown to this file")
      ->type_name("FILE");
  return demo::parse_and_run(app, argc, argv, [&]() -> Result<int> {
    if (auto status = demo::check_policies(options.policies); !status) {
      print_error({}, status.error());
      return kExitUsage;
    }
    return demo::run(options);
  });
}

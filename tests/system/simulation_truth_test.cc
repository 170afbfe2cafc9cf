// The simulator against the truth: one workload run by real daemons and simulated with the tiers
// that were measured here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include "policies/heuristics.h"
#include "policies/sim/simulator.h"
#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

constexpr int kNodes = 3;
constexpr double kTolerance = 0.15;
constexpr double kBusyShare = 0.15;  // of the CPUs, by others: real times mean nothing then
constexpr uint64_t kMiB = 1 << 20;
// Long enough to be mostly work, and busy enough to wait now and then.
const Argv kWorkload{"--tasks", "120",        "--datasets", "16",     "--min-size",
                     "2MiB",    "--max-size", "8MiB",       "--rate", "8",
                     "--work",  "4",          "--seed",     "5"};

Json output_of(const char* variable, Argv arguments,
               const std::map<std::string, std::string>& env = {}) {
  arguments.insert(arguments.begin(), program(variable));
  const auto outcome = run_command(arguments, env);
  if (outcome.code != 0) throw std::runtime_error(outcome.err + outcome.out);
  return Json::parse(outcome.out);
}

Argv with(Argv front, const Argv& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

// What the tasks of a real run cost: their CPU time is theirs alone, whoever else computes.
std::map<std::string, double> cpu_seconds(const Json& tasks) {
  std::map<std::string, double> seconds;
  for (const auto& task : tasks["tasks"])
    seconds[task["name"]] =
        (task["exit"]["cpu_user_ns"].get<double>() + task["exit"]["cpu_system_ns"].get<double>()) *
        1e-9;
  return seconds;
}

sim::Workload simulated_workload(const Json& plan, const std::map<std::string, double>& seconds) {
  sim::Workload workload;
  workload.users = {"all"};
  std::map<std::string, uint32_t> index;
  for (const auto& dataset : plan["datasets"]) {
    index[dataset["name"]] = static_cast<uint32_t>(workload.datasets.size());
    workload.datasets.push_back({dataset["bytes"].get<uint64_t>()});
  }
  for (const auto& planned : plan["tasks"]) {
    sim::Task task;
    task.arrival_ns = planned["arrival_ms"].get<int64_t>() * 1'000'000;
    task.operations = seconds.at(planned["name"]) * sim::kReferenceOperationsPerSecond;
    task.first_use = static_cast<uint32_t>(workload.uses.size());
    for (const auto& use : planned["datasets"])
      workload.uses.push_back({index.at(use["name"]), use["mode"] == "write"});
    task.use_count = static_cast<uint32_t>(workload.uses.size()) - task.first_use;
    workload.tasks.push_back(task);
  }
  return workload;
}

sim::ClusterSpec simulated_cluster(const sim::TierSpeeds& tiers) {
  sim::NodeGroup group;
  group.count = kNodes;
  group.units = 1;
  group.operations_per_s = sim::kReferenceOperationsPerSecond;
  group.fast_budget_bytes = 32 * kMiB;
  group.slow_budget_bytes = 128 * kMiB;
  group.tiers = tiers;
  group.shared_cores = std::thread::hardware_concurrency();
  return {.name = "this machine", .groups = {group}};
}

using MakePolicy = std::unique_ptr<Policy> (*)();
const std::map<std::string, MakePolicy> kPolicies{
    {"random", [] { return make_random_policy(1); }},
    {"round-robin", [] { return make_round_robin_policy(); }},
    {"least-loaded", [] { return make_least_loaded_policy(1); }},
    {"locality-greedy", [] { return make_locality_greedy_policy(1); }},
    {"locality-load", [] { return make_locality_load_policy(1); }}};

TEST(SimulationTruth, MeanResponsesAreThoseOfARealRun) {
  if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  Cluster cluster({.nodes = kNodes, .units = 1, .small_network = true, .calibrate = true});
  const auto slow = cluster.folder() / "slow";
  std::filesystem::create_directories(slow);
  const auto tiers =
      output_of("TIERPILOT_TEST_TIERTOOL", {"tier", "show", "-j", "--dir", slow.string()});
  const auto& others = tiers["tiers"][0]["others_cpu_share"];
  if (!others.is_number() || others.get<double>() > kBusyShare)
    GTEST_SKIP() << "others use this machine's CPUs: its times cannot be foreseen";
  std::ofstream(cluster.folder() / "tiers.json") << tiers;
  const auto speeds = sim::read_tier_speeds(cluster.folder() / "tiers.json");
  ASSERT_TRUE(speeds) << speeds.error().message;

  const auto plan = output_of("TIERPILOT_TEST_TIERLOAD", with({"-j", "plan"}, kWorkload));
  const auto spec = simulated_cluster(*speeds);
  const std::map<std::string, std::string> env{{"TIERPILOT_COORDINATOR", cluster.address()}};
  sim::Workload workload;
  for (const auto& [name, make] : kPolicies) {
    output_of("TIERPILOT_TEST_TIERCTL", {"-j", "policy", "use", name}, env);
    const auto real = output_of("TIERPILOT_TEST_TIERLOAD", with({"-j", "run"}, kWorkload), env);
    // The first run tells what the tasks cost; the others are foreseen.
    if (workload.tasks.empty())
      workload = simulated_workload(
          plan, cpu_seconds(output_of("TIERPILOT_TEST_TIERCTL", {"-j", "task", "list"}, env)));
    const double real_s = real["summary"]["response_ms"]["mean"].get<double>() * 1e-3;
    const auto policy = make();
    const auto simulated = sim::simulate(spec, workload, *policy, {});
    ASSERT_TRUE(simulated) << simulated.error().message;
    EXPECT_NEAR(simulated->response_s.mean, real_s, kTolerance * real_s) << name;
    RecordProperty(
        name, fmt::format("real {:.4f} s, simulated {:.4f} s", real_s, simulated->response_s.mean));
  }
}

}  // namespace
}  // namespace tierpilot::test

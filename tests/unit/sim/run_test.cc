// Whole runs: repeatable, whole, and with the figures that they should have.
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "policies/placement/registry.h"
#include "policies/sim/comparison.h"
#include "policies/sim/generator.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

GeneratorOptions busy() {
  GeneratorOptions options;
  options.tasks = 3000;
  options.datasets = 40;
  options.min_dataset_bytes = 2 * kMB;
  options.max_dataset_bytes = 40 * kMB;
  options.write_share = 0.05;
  options.users = 5;
  return options;
}

nlohmann::ordered_json compared(const ClusterSpec& cluster, uint32_t seeds) {
  const WorkloadSource source{[](const ClusterSpec& c, uint64_t seed) -> Result<Workload> {
                                return generate(busy(), c, seed);
                              },
                              std::nullopt};
  const ComparisonOptions options{
      .policies = {"random", "locality-load"}, .seeds = seeds, .make_player = heuristic_player};
  const auto runs = compare(cluster, source, options);
  return runs ? comparison_json(*runs, "random") : nlohmann::ordered_json{};
}

TEST(Run, EqualSeedsGiveEqualBytes) {
  auto cluster = plain_cluster(4, 2);
  cluster.groups[0].node_failures = {.mean_between_s = 200, .mean_repair_s = 10};
  const auto first = compared(cluster, 2).dump();
  EXPECT_EQ(first, compared(cluster, 2).dump());
  EXPECT_GT(first.size(), 1000u);
}

TEST(Run, ComparisonsArePairedBySeed) {
  const auto value = compared(plain_cluster(4, 2), 3);
  ASSERT_EQ(value["runs"].size(), 6u);
  ASSERT_EQ(value["policies"].size(), 2u);
  ASSERT_EQ(value["differences"].size(), 1u);
  double sum = 0;
  for (int seed = 0; seed < 3; ++seed) {
    const double base = value["runs"][2 * seed]["response_mean_s"];
    sum += (value["runs"][2 * seed + 1]["response_mean_s"].get<double>() - base) / base;
  }
  EXPECT_NEAR(value["differences"][0]["response_mean_s"]["mean"].get<double>(), sum / 3, 1e-12);
  EXPECT_TRUE(value["policies"][0]["reward_mean"]["ci95"].is_number());
  EXPECT_EQ(value["runs"][0]["holds"], 0) << "no heuristic keeps tasks back";
}

TEST(Run, LocalityMovesFewerBytes) {
  const auto value = compared(plain_cluster(4, 2), 1);
  const auto moved = [&](int policy) {
    const auto& row = value["runs"][policy];
    return row["fetched_bytes"].get<double>() + row["promoted_bytes"].get<double>();
  };
  EXPECT_LT(moved(1), 0.8 * moved(0));
}

TEST(Run, UtilisationIsTheWorkDone) {
  auto options = busy();
  options.datasets = 0;
  const auto cluster = plain_cluster(4, 2);
  const auto workload = generate(options, cluster, 1);
  const auto policy = make_least_loaded_policy(1);
  const auto [result, log] = run(cluster, workload, *policy);
  double work_s = 0;
  for (const Task& task : workload.tasks) work_s += task.operations / 1e9;
  EXPECT_NEAR(result.utilisation, work_s / (8 * result.makespan_s), 1e-3);
  auto slow_to_tell = cluster;
  slow_to_tell.coordinator.report_s = 1;
  const auto again = run(slow_to_tell, workload, *policy).result;
  EXPECT_NEAR(again.utilisation, work_s / (8 * again.makespan_s), 1e-3)
      << "a task that has ended keeps no unit busy until the coordinator knows";
  EXPECT_LE(result.samples.size(), RunResult::kMostSamples);
  EXPECT_GT(result.samples.size(), RunResult::kMostSamples / 4);
  EXPECT_EQ(result.responses_s.size(), workload.tasks.size());
}

// M/M/c: the mean wait is Erlang's C formula times the mean service over c (1 - load).
TEST(Run, AgreesWithQueueingTheory) {
  constexpr int kServers = 4;
  constexpr double kLoad = 0.7;
  WorkloadBuilder tasks;
  SeededRandom random(3);
  double at_s = 0;
  for (int i = 0; i < 200'000; ++i) {
    at_s += random.exponential(0.1 / (kServers * kLoad));
    Task& task = tasks.add(0, 0);
    task.arrival_ns = static_cast<int64_t>(at_s * 1e9);
    task.operations = random.exponential(1e8);
  }
  auto cluster = plain_cluster(1, kServers);
  cluster.coordinator.backlog_units = 0;
  cluster.coordinator.service_order = ServiceOrder::kArrival;
  const double wait_s = run(cluster, tasks.workload()).result.wait_s.mean;
  const double a = kServers * kLoad;
  double sum = 0, term = 1;
  for (int k = 0; k < kServers; term *= a / ++k) sum += term;
  const double erlang_c = term / (1 - kLoad) / (sum + term / (1 - kLoad));
  EXPECT_NEAR(wait_s, erlang_c * 0.1 / (kServers * (1 - kLoad)), 0.05 * wait_s);
}

TEST(Run, FairnessIsJains) {
  WorkloadBuilder tasks;
  tasks.add(0, 100).user = 0;
  tasks.add(0, 100).user = 1;
  const auto [result, log] = run(plain_cluster(1), tasks.workload());
  // Slowdowns 1 and 2: 3^2 / (2 * 5).
  EXPECT_NEAR(result.fairness, 0.9, 1e-6);
}

TEST(Run, DatasetsWithoutRoomAreRefused) {
  WorkloadBuilder tasks({20'000 * kMB});
  tasks.add(0, 1, {{0}});
  const auto policy = make_random_policy(1);
  const auto result = simulate(plain_cluster(2), tasks.workload(), *policy, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace tierpilot::sim

// Failing nodes and GPUs, and that nothing is lost or counted twice by them.
#include "policies/sim/engines.h"
#include "tests/unit/sim/failing_world.h"

namespace tierpilot::sim {
namespace {

TEST(Failures, EveryTaskEndsOnceAllTheSame) {
  for (const bool exclusive : {false, true}) {
    auto cluster = failing_cluster();
    cluster.groups[0].exclusive_tiers = exclusive;
    const auto workload = mixed(2000, cluster);
    const auto policy = make_locality_load_policy(1);
    const auto [result, log] = run(cluster, workload, *policy);
    EXPECT_EQ(result.succeeded + result.failed + result.rejected + result.unfinished, 2000u);
    if (!exclusive) {
      EXPECT_EQ(result.succeeded, 2000u) << "slow directories survive";
    }
    EXPECT_EQ(result.succeeded, log.order.size());
    EXPECT_GT(result.node_failures, 0u);
    EXPECT_GT(result.gpu_failures, 0u);
    EXPECT_GT(result.restarts, 0u);
    EXPECT_EQ(log.decisions.size(), log.services.size() + log.abandons.size())
        << "each decision is rewarded or abandoned";
  }
}

// Links so slow that there are lines at sources, which fail with readers and with those in line.
TEST(Failures, WhoStandsInLineForDataIsNotLost) {
  for (const uint32_t readers : {1U, 2U}) {
    auto cluster = failing_cluster();
    cluster.groups[0].count = 12;
    cluster.groups[0].readers = readers;
    cluster.groups[0].link_bytes_per_s = 10e6;
    const auto workload = mixed(1000, cluster);
    const auto policy = make_random_policy(1);
    const auto [result, log] = run(cluster, workload, *policy);
    EXPECT_EQ(result.succeeded, 1000u);
    EXPECT_GT(result.fetched_bytes, 1000 * kMB);
    EXPECT_GT(result.node_failures, 10u);
    EXPECT_EQ(log.decisions.size(), log.services.size() + log.abandons.size());
  }
}

TEST(Failures, ClustersBringMore) {
  auto cluster = plain_cluster(50);
  cluster.groups[0].node_failures = {.mean_between_s = 5000, .mean_repair_s = 1};
  cluster.coordinator.max_attempts = 100;
  WorkloadBuilder tasks;
  for (int i = 0; i < 500; ++i) tasks.add(i * 20'000, 1);
  const auto failures = [&](double probability) {
    cluster.failure_clusters = {.probability = probability, .mean_delay_s = 5};
    return static_cast<double>(run(cluster, tasks.workload()).result.node_failures);
  };
  const double alone = failures(0);
  EXPECT_NEAR(alone, 100, 40) << "50 nodes, 10,000 s";
  // Each brings 0.75 others, and these theirs.
  EXPECT_GT(failures(0.75), 2.5 * alone);
}

TEST(Failures, LostNodesAreForgivenSixteenTimes) {
  auto cluster = plain_cluster(1);
  cluster.groups[0].node_failures = {.mean_between_s = 1, .mean_repair_s = 1};
  cluster.coordinator.max_attempts = 2;
  WorkloadBuilder tasks;
  tasks.add(0, 1'000'000);
  const auto [result, log] = run(cluster, tasks.workload());
  EXPECT_EQ(result.failed, 1u);
  EXPECT_EQ(result.decisions, 16 + 2u);
}

TEST(Failures, CheckpointsKeepWork) {
  auto cluster = plain_cluster(1);
  cluster.groups[0].node_failures = {.mean_between_s = 50, .mean_repair_s = 1};
  cluster.coordinator.max_attempts = 100;
  cluster.coordinator.lease_s = 1;
  WorkloadBuilder tasks;
  for (int i = 0; i < 20; ++i) tasks.add(0, 100'000);
  const auto makespan = [&] { return run(cluster, tasks.workload()).result.makespan_s; };
  const double without_s = makespan();
  cluster.checkpoints = {.interval_s = 5, .cost_s = 0.1, .restart_s = 1};
  EXPECT_LT(makespan(), 0.7 * without_s);
}

TEST(Failures, CheckpointsKeepNoWorkThatSharedCoresDidNotDo) {
  // Two tasks on one core: neither has done its first 5 s of work when 9 s have passed.
  auto cluster = plain_cluster(2);
  cluster.groups[0].shared_cores = 1;
  EventQueue events;
  Engines engines(cluster, events);
  engines.run(0, 0, 7, 1, 100, 1);
  engines.run(0, 1, 8, 1, 100, 1);
  EXPECT_NEAR(engines.ran_s(9'000 * kMs, 0, 7, 0), 4.5, 1e-9);
  engines.end(9'000 * kMs, 1, 8, 1);
  EXPECT_NEAR(engines.ran_s(10'000 * kMs, 0, 7, 0), 5.5, 1e-9) << "alone from then on";
}

TEST(Run, RefusesTasksAfterTheEndOfVirtualTime) {
  WorkloadBuilder tasks;
  tasks.add(0, 1).arrival_ns = INT64_MAX;
  auto policy = make_least_loaded_policy(1);
  const auto result = simulate(plain_cluster(1), tasks.workload(), *policy, {});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("virtual time"), std::string::npos);
}

TEST(Failures, DataOnADeadNodeIsWaitedFor) {
  auto cluster = plain_cluster(2);
  // The mean is so long that nothing comes back.
  cluster.groups[0].node_failures = {.mean_between_s = 1, .mean_repair_s = 1e9};
  WorkloadBuilder tasks({kMB});
  tasks.add(100'000, 1, {{0}});
  const auto [result, log] = run(cluster, tasks.workload());
  EXPECT_EQ(result.succeeded + result.unfinished, 1u);
}

}  // namespace
}  // namespace tierpilot::sim

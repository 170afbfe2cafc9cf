// What bringing data in takes, reckoned by hand. The tolerance is that of rounding to nanoseconds.
#include <numeric>

#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

constexpr double kTolerance = 1e-6;

TEST(Serving, PromotionThenHit) {
  WorkloadBuilder tasks({50 * kMB});
  tasks.add(0, 10, {{0}});
  tasks.add(1000, 10, {{0}});
  const auto [result, log] = run(plain_cluster(1), tasks.workload());
  ASSERT_EQ(result.succeeded, 2u);
  EXPECT_NEAR(log.times[0].wait_s, 0.050, kTolerance) << "50 MB at 1 GB/s";
  EXPECT_NEAR(log.times[0].response_s, 0.060, kTolerance);
  EXPECT_NEAR(log.times[1].response_s, 0.010, kTolerance);
  EXPECT_EQ(result.promoted_bytes, 50 * kMB);
  EXPECT_EQ(result.hit_bytes, 50 * kMB);
  EXPECT_EQ(result.fetched_bytes, 0u);
}

TEST(Serving, FilesTakeTimeBesideTheirBytes) {
  WorkloadBuilder tasks({50 * kMB, 60 * kMB});
  tasks.add(0, 10, {{0}});
  tasks.add(1000, 1, {{1, true}});
  auto cluster = plain_cluster(1);
  cluster.groups[0].tiers.promote_start_s = 0.005;
  cluster.groups[0].tiers.evict_start_s = 0.007;
  const auto [result, log] = run(cluster, tasks.workload());
  EXPECT_NEAR(log.times[0].wait_s, 0.055, kTolerance);
  EXPECT_NEAR(log.times[1].wait_s, 0.065, kTolerance);
  EXPECT_NEAR(log.times[1].response_s, 0.065 + 0.001 + 0.067, kTolerance) << "and the commit";
}

TEST(Serving, FetchTakesTheSlowerOfDiskAndLink) {
  WorkloadBuilder tasks({50 * kMB});
  tasks.add(0, 10, {{0}});
  auto cluster = plain_cluster(2);
  cluster.groups[0].link_bytes_per_s = 0.5e9;
  cluster.groups[0].link_latency_s = 0.001;
  const auto [result, log] = run(cluster, tasks.workload(), {1});
  EXPECT_NEAR(log.times[0].wait_s, 0.101, kTolerance);
  EXPECT_EQ(result.fetched_bytes, 50 * kMB);
}

// Node 0 has it, nodes 1 to 3 fetch it one after the other, and then eight nodes at a time.
TEST(Serving, ManyReadersSpreadOverThoseThatHoldIt) {
  WorkloadBuilder tasks({20 * kMB});
  for (int i = 0; i < 4; ++i) tasks.add(1000 * i, 1, {{0}});
  for (int i = 4; i < 12; ++i) tasks.add(5000, 1, {{0}});
  std::vector<uint32_t> nodes(12);
  std::iota(nodes.begin(), nodes.end(), 0U);
  const auto [result, log] = run(plain_cluster(12), tasks.workload(), nodes);
  ASSERT_EQ(result.fetched_bytes, 11 * 20 * kMB);
  double mean_wait_s = 0;
  for (int i = 4; i < 12; ++i) mean_wait_s += log.times[i].wait_s / 8;
  // 40 ms with two readers each, 160 ms if all read from one.
  EXPECT_LT(mean_wait_s, 0.090);
}

TEST(Serving, TransfersUnderWayShareALink) {
  WorkloadBuilder tasks({50 * kMB, 20 * kMB});
  tasks.add(0, 1, {{0}});
  tasks.add(0, 1, {{1}});
  auto cluster = plain_cluster(1, 2);
  const auto [result, log] = run(cluster, tasks.workload());
  // Both at 0.5 GB/s until the small one is there, then the other has all.
  EXPECT_NEAR(log.times[1].wait_s, 0.040, kTolerance);
  EXPECT_NEAR(log.times[0].wait_s, 0.070, kTolerance);
}

TEST(Serving, OnlySoManyMoversWork) {
  WorkloadBuilder tasks({20 * kMB, 20 * kMB});
  tasks.add(0, 1, {{0}});
  tasks.add(0, 1, {{1}});
  auto cluster = plain_cluster(1, 2);
  cluster.groups[0].movers = 1;
  const auto [result, log] = run(cluster, tasks.workload());
  EXPECT_NEAR(log.times[0].wait_s, 0.020, kTolerance);
  EXPECT_NEAR(log.times[1].wait_s, 0.040, kTolerance);
}

TEST(Serving, TwoThatNeedOneDatasetLoadItOnce) {
  WorkloadBuilder tasks({50 * kMB});
  tasks.add(0, 1, {{0}});
  tasks.add(0, 1, {{0}});
  const auto [result, log] = run(plain_cluster(1, 2), tasks.workload());
  EXPECT_NEAR(log.times[1].wait_s, 0.050, kTolerance);
  EXPECT_EQ(result.promoted_bytes, 100 * kMB) << "the second reports the way of the first";
  EXPECT_EQ(result.evicted_bytes, 0u);
}

TEST(Serving, CleanCopiesLeaveWithoutCost) {
  WorkloadBuilder tasks({60 * kMB, 60 * kMB});
  tasks.add(0, 1, {{0}});
  tasks.add(1000, 1, {{1}});
  const auto [result, log] = run(plain_cluster(1), tasks.workload());
  EXPECT_NEAR(log.times[1].wait_s, 0.060, kTolerance);
  EXPECT_EQ(result.evicted_bytes, 60 * kMB);
  EXPECT_EQ(result.evicted_written_bytes, 0u);
  EXPECT_FALSE(log.services[1].reward.evicted);
}

TEST(Serving, WhatLeavesTakesTimeToBeFreedWhereThatIsSaid) {
  WorkloadBuilder tasks({60 * kMB, 80 * kMB});
  tasks.add(0, 1, {{0}});
  tasks.add(1000, 1, {{1}});
  auto cluster = plain_cluster(1);
  cluster.groups[0].tiers.free_bytes_per_s = 2e9;
  const auto [result, log] = run(cluster, tasks.workload());
  EXPECT_NEAR(log.times[1].wait_s, 0.030 + 0.080, kTolerance);
  EXPECT_EQ(result.evicted_bytes, 60 * kMB);
  EXPECT_EQ(result.evicted_written_bytes, 0u);
}

TEST(Serving, WhatWasFetchedIsWrittenBackBeforeItLeaves) {
  WorkloadBuilder tasks({60 * kMB, 60 * kMB});  // homes: node 0, node 1
  tasks.add(0, 1, {{1}});
  tasks.add(1000, 1, {{0}});
  const auto [result, log] = run(plain_cluster(2), tasks.workload(), {0});
  EXPECT_EQ(result.evicted_written_bytes, 60 * kMB);
  EXPECT_NEAR(log.times[1].wait_s, 0.120, kTolerance) << "written at 1 GB/s, then promoted";
  EXPECT_TRUE(log.services[1].reward.evicted);
}

TEST(Serving, LeastRecentlyUsedLeaves) {
  WorkloadBuilder tasks({40 * kMB, 40 * kMB, 40 * kMB});
  const auto use = [&](int64_t at, uint32_t dataset) { tasks.add(at, 1, {{dataset}}); };
  use(0, 0), use(1000, 1), use(2000, 0), use(3000, 2), use(4000, 0), use(5000, 1);
  const auto [result, log] = run(plain_cluster(1), tasks.workload());
  EXPECT_NEAR(log.times[4].wait_s, 0, kTolerance) << "0 was used after 1";
  EXPECT_NEAR(log.times[5].wait_s, 0.040, kTolerance);
}

TEST(Serving, ExclusiveTiersMove) {
  WorkloadBuilder tasks({60 * kMB, 60 * kMB});
  tasks.add(0, 1, {{0}});
  tasks.add(1000, 1, {{1}});
  auto cluster = plain_cluster(1);
  cluster.groups[0].exclusive_tiers = true;
  const auto [result, log] = run(cluster, tasks.workload());
  EXPECT_EQ(result.evicted_written_bytes, 60 * kMB) << "the slow copy went with the promotion";
}

TEST(Serving, PinnedDataMakesOthersWait) {
  WorkloadBuilder tasks({60 * kMB, 60 * kMB});
  tasks.add(0, 500, {{0}});
  tasks.add(100, 1, {{1}});
  const auto [result, log] = run(plain_cluster(1), tasks.workload());
  EXPECT_NEAR(log.times[1].wait_s, 0.460 + 0.060, kTolerance)
      << "until the first has run, then its own promotion";
}

TEST(Serving, AWriteMakesTheNextVersionAndOthersGo) {
  WorkloadBuilder tasks({10 * kMB});
  tasks.add(0, 1, {{0}});           // node 0 has it fast
  tasks.add(1000, 1, {{0, true}});  // node 1 writes it
  tasks.add(2000, 1, {{0}});        // node 0 must fetch the new version
  tasks.add(3000, 1, {{0}});        // node 1 has it
  const auto [result, log] = run(plain_cluster(2), tasks.workload(), {0, 1, 0, 1});
  ASSERT_EQ(result.succeeded, 4u);
  EXPECT_NEAR(log.times[1].wait_s, 0.010, kTolerance);
  EXPECT_NEAR(log.times[1].response_s, 0.010 + 0.001 + 0.010, kTolerance) << "and the commit";
  EXPECT_NEAR(log.times[2].wait_s, 0.010, kTolerance);
  EXPECT_NEAR(log.times[3].wait_s, 0, kTolerance);
  EXPECT_EQ(result.fetched_bytes, 20 * kMB);
}

TEST(Serving, OneWriterAtATimeAndReadersPass) {
  WorkloadBuilder tasks({10 * kMB});
  tasks.add(0, 100, {{0, true}});
  tasks.add(1, 100, {{0, true}});
  tasks.add(2, 5, {{0}});
  const auto [result, log] = run(plain_cluster(1, 4), tasks.workload());
  ASSERT_EQ(result.succeeded, 3u);
  EXPECT_EQ(log.order.front(), 2u) << "overtakes the writer that waits";
  EXPECT_GT(log.times[1].wait_s, 0.1);
}

TEST(Serving, RewardIsThatOfTheCoordinator) {
  WorkloadBuilder tasks({50 * kMB});
  tasks.add(0, 10, {{0}});
  const auto [result, log] = run(plain_cluster(1), tasks.workload());
  ASSERT_EQ(log.services.size(), 1u);
  const auto& [attempt, measure, reward] = log.services[0];
  EXPECT_EQ(attempt, (Attempt{0, 1}));
  EXPECT_NEAR(measure.service_ns, 50e6, 2);
  EXPECT_NEAR(measure.reference_ns, 100 + 5e6, 1);
  EXPECT_EQ(reward.reward, compute_reward(measure, {})->reward);
  EXPECT_EQ(result.reward_mean, reward.reward);
}

}  // namespace
}  // namespace tierpilot::sim

// Who reads from which node, and when: reckoned by hand where that is possible.
#include <algorithm>
#include <numeric>

#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

constexpr double kTolerance_s = 1e-6;

// Node 0 holds one dataset of 20 MB, which the nodes from 1 on ask for at the same time.
struct Rush {
  explicit Rush(uint32_t readers, uint32_t turns) : cluster(plain_cluster(readers + 1)) {
    cluster.groups[0].readers = turns;
    nodes.resize(readers);
    std::iota(nodes.begin(), nodes.end(), 1U);
    for (uint32_t i = 0; i < readers; ++i) tasks.add(0, 1, {{0}});
  }
  std::vector<double> sorted_waits_s() {
    const auto [result, log] = run(cluster, tasks.workload(), nodes);
    EXPECT_EQ(result.succeeded, nodes.size());
    EXPECT_EQ(result.fetched_bytes, nodes.size() * 20 * kMB);
    std::vector<double> waits_s;
    for (const auto& times : log.times) waits_s.push_back(times.wait_s);
    std::sort(waits_s.begin(), waits_s.end());
    return waits_s;
  }
  ClusterSpec cluster;
  WorkloadBuilder tasks{{20 * kMB}};
  std::vector<uint32_t> nodes;
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(Fetching, OnlySoManyReadFromANodeAtATime) {
  const auto waits_s = Rush(2, 1).sorted_waits_s();
  EXPECT_NEAR(waits_s[0], 0.020, kTolerance_s) << "alone, and not at half the speed";
  EXPECT_NEAR(waits_s[1], 0.040, kTolerance_s);
  for (const double wait_s : Rush(2, 2).sorted_waits_s()) EXPECT_NEAR(wait_s, 0.040, kTolerance_s);
}

TEST(Fetching, WhoWaitsGoesOnToTheCopyThatHasComeToBe) {
  const auto waits_s = Rush(3, 1).sorted_waits_s();
  EXPECT_NEAR(waits_s[1], 0.040, kTolerance_s);
  EXPECT_NEAR(waits_s[2], 0.040, kTolerance_s) << "from the first reader";
}

// 63 readers are served in some log2(64) rounds of 20 ms; all at once they would all take 1.26 s.
TEST(Fetching, CopiesMultiplyWhenManyAskAtOnce) {
  const auto waits_s = Rush(63, 1).sorted_waits_s();
  EXPECT_LE(waits_s.back(), 0.200 + kTolerance_s);
  const auto at_once_s = Rush(63, 64).sorted_waits_s();
  EXPECT_NEAR(at_once_s.front(), 63 * 0.020, kTolerance_s);
  EXPECT_LT(mean(waits_s), mean(at_once_s) / 8);
}

TEST(Fetching, AWritersCopyIsNoSource) {
  Rush rush(3, 1);
  rush.tasks = WorkloadBuilder{{20 * kMB}};
  rush.tasks.add(0, 500, {{0, true}});
  rush.tasks.add(0, 1, {{0}});
  rush.tasks.add(0, 1, {{0}});
  const auto waits_s = rush.sorted_waits_s();
  EXPECT_NEAR(waits_s[2], 0.060, kTolerance_s) << "all three from node 0, one after the other";
}

// On node 1 a writer and a reader want it, and the reader stands in line behind the writer.
TEST(Fetching, AWriterWithATurnDoesNotWaitForAReaderBehindIt) {
  WorkloadBuilder tasks({20 * kMB});
  tasks.add(0, 1, {{0}});
  tasks.add(1, 1, {{0, true}});
  tasks.add(2, 1, {{0}});
  tasks.add(3, 1, {{0}});
  auto cluster = plain_cluster(4, 2);
  cluster.groups[0].readers = 1;
  const auto [result, log] = run(cluster, tasks.workload(), {2, 1, 3, 1});
  EXPECT_EQ(result.succeeded, 4u);
  EXPECT_EQ(result.fetched_bytes, 4 * 20 * kMB);
}

// Two datasets have their homes on nodes 0 and 1: a line at one keeps nobody from the other.
TEST(Fetching, EachSourceHasItsOwnLine) {
  WorkloadBuilder tasks({20 * kMB, 20 * kMB});
  for (const uint32_t dataset : {0U, 0U, 1U}) tasks.add(0, 1, {{dataset}});
  auto cluster = plain_cluster(5);
  cluster.groups[0].readers = 1;
  const auto [result, log] = run(cluster, tasks.workload(), {2, 3, 4});
  EXPECT_NEAR(log.times[2].wait_s, 0.020, kTolerance_s);
}

}  // namespace
}  // namespace tierpilot::sim

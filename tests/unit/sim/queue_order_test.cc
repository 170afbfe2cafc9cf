// Which of the tasks that wait is served next (policies/scheduling/service_order.h), in the queue
// and on nodes.
#include "policies/sim/generator.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

using Order = std::vector<uint32_t>;

ClusterSpec one_unit(uint32_t backlog = 0) {
  auto cluster = plain_cluster(1);
  cluster.coordinator.backlog_units = backlog;
  return cluster;
}

TEST(QueueOrder, TheShortestThatWaitsIsNext) {
  WorkloadBuilder tasks;
  tasks.add(0, 100);
  tasks.add(1, 70), tasks.add(2, 20), tasks.add(3, 50);
  EXPECT_EQ(run(one_unit(), tasks.workload()).log.order, (Order{0, 2, 3, 1}));
  EXPECT_EQ(run(one_unit(100), tasks.workload()).log.order, (Order{0, 2, 3, 1})) << "on the node";
  auto cluster = one_unit();
  cluster.coordinator.service_order = ServiceOrder::kArrival;
  EXPECT_EQ(run(cluster, tasks.workload()).log.order, (Order{0, 1, 2, 3}));
}

// Of a second, among tasks of 100 ms that come faster than they can be served.
TEST(QueueOrder, ALongTaskIsOvertakenByThoseOnlyThatComeSoonAfterIt) {
  WorkloadBuilder tasks;
  tasks.add(0, 100);
  tasks.add(1, 1000);
  for (int i = 0; i < 200; ++i) tasks.add(2 + 90 * i, 100);
  const auto order = run(one_unit(), tasks.workload()).log.order;
  const auto before = std::find(order.begin(), order.end(), 1U) - order.begin();
  EXPECT_NEAR(static_cast<double>(before), 1 + 4.5 / 0.09, 2) << "five times 0.9 s of others";
}

TEST(QueueOrder, DataAtHandComesBeforeDataThatHasToBeBrought) {
  WorkloadBuilder tasks({60 * kMB, 60 * kMB});
  tasks.add(0, 100, {{0}});
  tasks.add(10, 30, {{1}});
  tasks.add(20, 50, {{0}});  // 20 ms longer, but the others' data takes 60 ms
  EXPECT_EQ(run(one_unit(), tasks.workload()).log.order, (Order{0, 2, 1}));
}

TEST(QueueOrder, WhoNeedsNothingElseGoesWhenNobodyElseWaits) {
  WorkloadBuilder tasks({60 * kMB, 60 * kMB});
  tasks.add(0, 100, {{0}});
  tasks.add(10, 30, {{1}});
  EXPECT_EQ(run(one_unit(), tasks.workload()).result.succeeded, 2u);
}

// The node that has the data is full, and who waits for it is kept from nobody's place.
TEST(QueueOrder, DataOnAFullNodeIsNotAtHand) {
  WorkloadBuilder tasks({60 * kMB, 60 * kMB});
  tasks.add(0, 10, {{0}});  // brings it to the first node
  tasks.add(0, 100);        // fills the second
  tasks.add(80, 100);       // fills the first
  tasks.add(81, 40, {{0}});
  tasks.add(82, 60);  // needs no data
  auto cluster = plain_cluster(2);
  cluster.coordinator.backlog_units = 0;
  const auto order = run(cluster, tasks.workload(), {0, 1, 0, 1, 1}).log.order;
  EXPECT_LT(std::find(order.begin(), order.end(), 4U), std::find(order.begin(), order.end(), 3U));
}

// More than the head of the queue that is looked at, with writers that wait for each other.
TEST(QueueOrder, EveryTaskOfALongQueueIsServedOnce) {
  auto cluster = plain_cluster(6, 2);
  cluster.groups[0].node_failures = {.mean_between_s = 60, .mean_repair_s = 5};
  cluster.coordinator.max_attempts = 100;
  GeneratorOptions options;
  options.tasks = 3000;
  options.offered_load = 1.5;
  options.datasets = 40;
  options.min_dataset_bytes = kMB;
  options.max_dataset_bytes = 30 * kMB;
  options.write_share = 0.5;
  options.units = {1, 2};
  for (const char* name : {"locality-load", "delay-finish"}) {
    const auto policy = make_policy(name);
    const auto [result, log] = run(cluster, generate(options, cluster, 2), **policy);
    EXPECT_EQ(result.succeeded, 3000u) << name;
    EXPECT_GT(result.restarts, 0u) << name;
  }
}

TEST(QueueOrder, TheMeanResponseIsShorterThanInTheOrderOfArrival) {
  auto cluster = plain_cluster(4, 2);
  GeneratorOptions options;
  options.tasks = 4000;
  options.offered_load = 0.95;
  options.datasets = 0;
  options.max_operations = 1e10;
  const auto mean = [&](ServiceOrder order) {
    cluster.coordinator.service_order = order;
    return run(cluster, generate(options, cluster, 5)).result.response_s.mean;
  };
  EXPECT_LT(mean(ServiceOrder::kShortest), 0.9 * mean(ServiceOrder::kArrival));
}

}  // namespace
}  // namespace tierpilot::sim

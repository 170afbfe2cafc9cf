// The queue, candidates, waiting on nodes, and what policies are shown.
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

constexpr double kTolerance = 1e-6;

TEST(Rules, BacklogThenTheQueue) {
  WorkloadBuilder tasks;
  for (int i = 0; i < 5; ++i) tasks.add(0, 100);
  auto cluster = plain_cluster(1);
  cluster.coordinator.backlog_units = 2;
  ScriptedPolicy policy({0});
  const auto [result, log] = run(cluster, tasks.workload(), policy);
  ASSERT_EQ(policy.views.size(), 5u);
  EXPECT_EQ(policy.views[2].nodes[0].assigned, 2u);
  EXPECT_EQ(policy.views[3].nodes[0].assigned, 2u) << "the fourth waited for the first to end";
  for (size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(log.times[i].wait_s, 0.1 * static_cast<double>(i), kTolerance);
}

TEST(Rules, AWideTaskIsNotOvertaken) {
  WorkloadBuilder tasks;
  tasks.add(0, 100);
  tasks.add(1, 10).units = 2;
  tasks.add(2, 30);
  auto cluster = plain_cluster(1, 2);
  cluster.coordinator.backlog_units = 0;
  EXPECT_EQ(run(cluster, tasks.workload()).log.order, (std::vector<uint32_t>{0, 1, 2}))
      << "in the queue";
  cluster.coordinator.backlog_units = 4;
  EXPECT_EQ(run(cluster, tasks.workload()).log.order, (std::vector<uint32_t>{0, 1, 2}))
      << "on the node";
}

TEST(Rules, WhatNoNodeCanTakeIsRejected) {
  WorkloadBuilder tasks({200 * kMB});
  tasks.add(0, 1).units = 3;
  tasks.add(0, 1, {{0}});
  tasks.add(0, 1).gpu_milli = 500;
  tasks.add(0, 1);
  const auto [result, log] = run(plain_cluster(2, 2), tasks.workload());
  EXPECT_EQ(result.rejected, 3u);
  EXPECT_EQ(result.succeeded, 1u);
}

TEST(Rules, OverheadsAddUp) {
  WorkloadBuilder tasks;
  tasks.add(0, 10);
  auto cluster = plain_cluster(1);
  cluster.coordinator.accept_s = 0.001;
  cluster.coordinator.dispatch_s = 0.002;
  cluster.coordinator.report_s = 0.004;
  cluster.groups[0].launch_s = 0.008;
  const auto [result, log] = run(cluster, tasks.workload());
  EXPECT_NEAR(log.times[0].wait_s, 0.003, kTolerance);
  EXPECT_NEAR(log.times[0].response_s, 0.025, kTolerance);
}

TEST(Rules, ProcessesOfOneMachineShareItsCores) {
  WorkloadBuilder tasks;
  for (int i = 0; i < 3; ++i) tasks.add(0, 100);
  auto cluster = plain_cluster(3);
  cluster.groups[0].shared_cores = 2;
  const auto [result, log] = run(cluster, tasks.workload(), {0, 1, 2});
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(log.times[i].response_s, 0.150, kTolerance);
}

// A transfer takes half a core: 1.5 of one are wanted meanwhile.
TEST(Rules, TransfersTakeTheirPartOfSharedCores) {
  WorkloadBuilder tasks({100 * kMB});
  tasks.add(0, 100);
  tasks.add(10, 100, {{0, false}});  // promoted in 100 ms, alone
  auto cluster = plain_cluster(2);
  cluster.groups[0].shared_cores = 1;
  const auto [result, log] = run(cluster, tasks.workload(), {1, 0});
  EXPECT_NEAR(log.times[0].response_s, 0.010 + 0.090 * 1.5, kTolerance);
  EXPECT_NEAR(log.times[1].response_s, 0.150 + 0.100, kTolerance);
}

// The daemons' work for a task takes a core's time when it is decided, starts and has ended.
TEST(Rules, HandlingTasksTakesItsPartOfSharedCores) {
  WorkloadBuilder tasks;
  tasks.add(0, 100);
  tasks.add(50, 100);
  auto cluster = plain_cluster(2);
  cluster.groups[0].shared_cores = 1;
  cluster.groups[0].handling_core_s = 0.030;
  cluster.coordinator.dispatch_s = 0.004;
  const auto [result, log] = run(cluster, tasks.workload(), {0, 1});
  EXPECT_NEAR(log.times[0].wait_s, 0.004, kTolerance);
  EXPECT_NEAR(log.times[1].wait_s, 0.008, kTolerance) << "beside the first task: half a core";
  // All of it is on one core: the two tasks' work, and of the handling all but the last part.
  EXPECT_NEAR(log.times[1].response_s, 0.200 + 0.050 - 0.050, kTolerance);

  cluster.groups[0].shared_cores = 8;
  const auto [alone, times] = run(cluster, tasks.workload(), {0, 1});
  EXPECT_NEAR(times.times[1].response_s, 0.104, kTolerance) << "there are cores for all";

  cluster.groups[0].shared_cores = 0;
  const auto [apart, own] = run(cluster, tasks.workload(), {0, 1});
  EXPECT_NEAR(own.times[1].response_s, 0.104, kTolerance) << "each node has its own";
}

TEST(Rules, GpusAreShared) {
  WorkloadBuilder tasks;
  for (int i = 0; i < 3; ++i) tasks.add(0, 100).gpu_milli = 500;
  tasks.add(0, 100).gpu_milli = 2000;
  tasks.add(0, 100).gpu_type = 1;  // without a GPU the type does not matter
  auto cluster = plain_cluster(1, 8);
  cluster.groups[0].gpus = 2;
  cluster.groups[0].gpu_type = "small";
  const auto [result, log] = run(cluster, tasks.workload());
  ASSERT_EQ(result.succeeded, 5u);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(log.times[i].wait_s, 0, kTolerance);
  EXPECT_NEAR(log.times[3].wait_s, 0.1, kTolerance) << "two whole ones";
}

TEST(Rules, GpuTypeMustFit) {
  WorkloadBuilder tasks;
  auto& picky = tasks.add(0, 1);
  picky.gpu_milli = 1000;
  picky.gpu_type = 1;
  auto cluster = plain_cluster(1);
  cluster.groups.push_back(plain_nodes(1));
  cluster.groups[0].gpus = cluster.groups[1].gpus = 1;
  cluster.groups[0].gpu_type = "small";
  cluster.groups[1].gpu_type = "large";
  ScriptedPolicy policy({0});
  const auto [result, log] = run(cluster, tasks.workload(), policy);
  ASSERT_EQ(policy.views.size(), 1u);
  EXPECT_FALSE(policy.views[0].nodes[0].candidate);
  EXPECT_TRUE(policy.views[0].nodes[1].candidate);
}

TEST(Rules, TheViewSaysAllThereIs) {
  WorkloadBuilder tasks({30 * kMB, 20 * kMB});
  tasks.add(0, 1000, {{0}});
  tasks.add(500, 10, {{0}, {1, true}});
  auto cluster = plain_cluster(2, 2);
  cluster.groups[0].gpus = 2;
  ScriptedPolicy policy({0});
  run(cluster, tasks.workload(), policy);
  ASSERT_EQ(policy.views.size(), 2u);
  const View& view = policy.views[1];
  EXPECT_EQ(view.task.data_bytes, 50 * kMB);
  EXPECT_TRUE(view.task.writes);
  EXPECT_DOUBLE_EQ(view.task.operations, 10e6);
  ASSERT_EQ(view.nodes.size(), 2u);
  const NodeState& first = view.nodes[0];
  EXPECT_EQ(first.running, 1u);
  EXPECT_EQ(first.assigned, 1u);
  EXPECT_EQ(first.held_fast_bytes, 30 * kMB);
  EXPECT_EQ(first.held_slow_bytes, 0u) << "counted once, in the faster tier";
  EXPECT_EQ(first.free_fast_bytes, 70 * kMB);
  EXPECT_DOUBLE_EQ(first.assigned_operations, 1e9);
  EXPECT_EQ(first.assigned_fetch_bytes, 0u) << "served already";
  EXPECT_EQ(first.free_gpu_milli, 2000u);
  EXPECT_DOUBLE_EQ(first.rates.promote_bytes_per_s, 1e9);
  EXPECT_EQ(view.nodes[1].held_slow_bytes, 20 * kMB);
  EXPECT_EQ(view.nodes[1].slot, 1u);
}

TEST(Rules, SpeedsOfRunsAndLinksAreLearntFromTasks) {
  WorkloadBuilder tasks({10 * kMB, 30 * kMB});  // homes: node 0, node 1
  tasks.add(0, 100);
  tasks.add(10, 1, {{1}});
  tasks.add(11, 1, {{0}, {1}});
  tasks.add(500, 1);
  auto cluster = plain_cluster(2);
  cluster.groups[0].link_bytes_per_s = 0.5e9;
  cluster.groups[0].launch_s = 0.1;
  ScriptedPolicy policy({0});
  run(cluster, tasks.workload(), policy);
  ASSERT_EQ(policy.views.size(), 4u);
  const NodeRates unknown = policy.views[0].nodes[0].rates;
  EXPECT_EQ(unknown.operations_per_s, 0);
  EXPECT_EQ(unknown.fetch_bytes_per_s, 0);
  EXPECT_GT(unknown.promote_bytes_per_s, 0) << "measured by the node itself";
  const NodeRates learnt = policy.views[3].nodes[0].rates;
  // 100 ms of work took 200, then twice 1 ms took 101: the later, the heavier.
  EXPECT_NEAR(learnt.operations_per_s, (81e6 + 0.9e6 + 1e6) / (0.81 * 0.2 + 0.9 * 0.101 + 0.101),
              1);
  EXPECT_NEAR(learnt.fetch_bytes_per_s, 0.5e9, 100) << "waiting and promotion are no transfer";
  EXPECT_EQ(policy.views[3].nodes[1].rates.operations_per_s, 0) << "nothing ran there";
}

TEST(Rules, PoliciesSeeWhatTasksDeclare) {
  WorkloadBuilder tasks;
  tasks.add(0, 100).declared_operations = 7e6;
  tasks.add(50, 1).declared_operations = 0;
  tasks.add(500, 1);
  ScriptedPolicy policy({0});
  const auto [result, log] = run(plain_cluster(1), tasks.workload(), policy);
  ASSERT_EQ(policy.views.size(), 3u);
  EXPECT_EQ(policy.views[0].task.operations, 7e6);
  EXPECT_EQ(policy.views[1].task.operations, 0) << "nothing is an answer too";
  EXPECT_EQ(policy.views[1].nodes[0].assigned_operations, 7e6);
  EXPECT_EQ(policy.views[2].task.operations, 1e6) << "the truth, where nothing was declared";
  EXPECT_EQ(policy.views[2].nodes[0].assigned_operations, 0);
  EXPECT_NEAR(log.times[0].response_s, 0.1, kTolerance) << "it takes what it takes";
  EXPECT_NEAR(policy.views[2].nodes[0].rates.operations_per_s, 7e6 / 0.1, 1);
}

TEST(Rules, TasksOfANodeBeginInTheOrderInWhichItGotThem) {
  WorkloadBuilder tasks({50 * kMB, 10 * kMB});
  tasks.add(0, 200);
  tasks.add(1, 10, {{0}});
  tasks.add(2, 10, {{1}});
  EXPECT_EQ(run(plain_cluster(1), tasks.workload()).log.order, (std::vector<uint32_t>{0, 1, 2}))
      << "the last one's data was there before";
}

TEST(Rules, ALargeClusterIsSeenInPart) {
  WorkloadBuilder tasks(std::initializer_list<uint64_t>{kMB, kMB, kMB, kMB, kMB, kMB});
  tasks.add(0, 100);
  tasks.add(10, 100);
  tasks.add(20, 100, {{5}});
  auto cluster = plain_cluster(10);
  cluster.coordinator.considered_nodes = 4;
  ScriptedPolicy policy({0});
  const auto [result, log] = run(cluster, tasks.workload(), policy);
  ASSERT_EQ(policy.views.size(), 3u);
  const auto slots = [&](size_t decision) {
    std::vector<uint32_t> seen;
    for (const NodeState& node : policy.views[decision].nodes) seen.push_back(node.slot);
    return seen;
  };
  EXPECT_EQ(slots(0), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(slots(1), (std::vector<uint32_t>{1, 2, 3, 4})) << "the first is loaded";
  EXPECT_EQ(slots(2), (std::vector<uint32_t>{2, 3, 4, 5})) << "the sixth has the data";
  EXPECT_EQ(policy.views[2].nodes[3].held_slow_bytes, kMB);
  EXPECT_EQ(result.succeeded, 3u);
}

TEST(Rules, APolicyThatChoosesNoCandidateEndsTheRun) {
  struct Wrong final : Policy {
    Decision decide(const View&) override { return {}; }
  } wrong;
  WorkloadBuilder tasks;
  tasks.add(0, 1);
  const auto result = simulate(plain_cluster(1), tasks.workload(), wrong, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
}

TEST(Rules, ARunCanBeStopped) {
  WorkloadBuilder tasks;
  for (int i = 0; i < 100'000; ++i) tasks.add(i, 1);
  const auto policy = make_random_policy(1);
  const auto result = simulate(plain_cluster(1), tasks.workload(), *policy,
                               {.progress = [](double) { return false; }});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kTimeout);
}

TEST(Rules, NothingToDoIsNoError) {
  EXPECT_EQ(run(plain_cluster(1), Workload{}).result.tasks, 0u);
}

}  // namespace
}  // namespace tierpilot::sim

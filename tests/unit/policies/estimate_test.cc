#include "policies/scheduling/estimate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policies/placement/registry.h"

namespace tierpilot {
namespace {

constexpr NodeRates kRates{.operations_per_s = 1e9,
                           .fast_bytes_per_s = 8e9,
                           .promote_bytes_per_s = 2e9,
                           .evict_bytes_per_s = 1e9,
                           .fetch_bytes_per_s = 5e8};

NodeState idle_node() {
  return {.candidate = true,
          .units = 2,
          .free_fast_bytes = 1'000'000'000,
          .fast_budget_bytes = 1'000'000'000,
          .rates = kRates};
}

const TaskFeatures kTask{.operations = 3e9, .data_bytes = 100'000'000};

FinishEstimate estimate(const NodeState& node, const TaskFeatures& task = kTask) {
  return estimate_finish(task, node, typical_rates({task, {node}}));
}

TEST(Estimate, AnIdleNodeFetchesAndRuns) {
  const auto e = estimate(idle_node());
  EXPECT_EQ(e.wait_s, 0);
  EXPECT_DOUBLE_EQ(e.serve_s, 0.2);
  EXPECT_DOUBLE_EQ(e.run_s, 3);
  EXPECT_DOUBLE_EQ(e.finish_s(), 3.2);
}

TEST(Estimate, DataThatIsThereNeedsNoTransferAndNoQueueForOne) {
  NodeState node = idle_node();
  node.assigned_fetch_bytes = 1'000'000'000;
  node.held_slow_bytes = kTask.data_bytes;
  EXPECT_DOUBLE_EQ(estimate(node).serve_s, 0.05 + 0.5) << "promoted, behind what waits";
  node.held_fast_bytes = kTask.data_bytes;
  EXPECT_EQ(estimate(node).serve_s, 0);
}

TEST(Estimate, MakingRoomCountsWhatMustLeave) {
  NodeState node = idle_node();
  node.free_fast_bytes = 40'000'000;
  EXPECT_DOUBLE_EQ(estimate(node).evict_s, 0.06);
  EXPECT_DOUBLE_EQ(estimate(node).serve_s, 0.26);
}

TEST(Estimate, WaitsForExcessUnitsOnlyAndMeanwhileServes) {
  NodeState node = idle_node();
  node.assigned = 1;
  node.assigned_operations = 5e9;
  EXPECT_EQ(estimate(node).wait_s, 0) << "a unit is free";
  node.assigned = 4;
  node.assigned_operations = 8e9;
  const auto e = estimate(node);  // 3 tasks of 2 s each must end, two at a time
  EXPECT_DOUBLE_EQ(e.wait_s, 3);
  EXPECT_DOUBLE_EQ(e.finish_s(), 6);
}

TEST(Estimate, UnknownRatesAreThoseOfTheOthers) {
  NodeState unknown = idle_node();
  unknown.rates = {};
  NodeState fast = idle_node();
  fast.rates.operations_per_s = 3e9;
  const View view{kTask, {idle_node(), fast, unknown}};
  EXPECT_DOUBLE_EQ(typical_rates(view).operations_per_s, 2e9);
  EXPECT_DOUBLE_EQ(estimate_finish(kTask, unknown, typical_rates(view)).run_s, 1.5);
  const auto alone = estimate(unknown);
  EXPECT_TRUE(std::isfinite(alone.finish_s()));
  EXPECT_GT(alone.finish_s(), 0);
}

TEST(Estimate, OthersPayTheMoreTheLongerItTakesAndTheBusierTheClusterIs) {
  const auto e = estimate(idle_node());
  EXPECT_EQ(marginal_cost_s(e, 0), e.finish_s());
  EXPECT_GT(marginal_cost_s(e, 0.8), marginal_cost_s(e, 0.5));
  EXPECT_TRUE(std::isfinite(marginal_cost_s(e, 1)));
  NodeState busy = idle_node();
  busy.assigned = 2;
  EXPECT_EQ(cluster_load({kTask, {busy, idle_node()}}), 0.5);
  EXPECT_EQ(cluster_load({}), 0);
}

TEST(EarliestFinish, TakesTheFasterNodeUntilItsQueueIsTooLong) {
  const auto policy = *make_policy("earliest-finish");
  NodeState fast = idle_node();
  fast.rates.operations_per_s = 3e9;
  View view{kTask, {idle_node(), fast}};
  EXPECT_EQ(policy->decide(view).node, 1u);
  view.nodes[1].assigned = 4;
  view.nodes[1].assigned_operations = 40e9;
  const Decision decision = policy->decide(view);
  EXPECT_EQ(decision.node, 0u);
  ASSERT_TRUE(decision.q[0] && decision.q[1]);
  EXPECT_GT(*decision.q[0], *decision.q[1]);
  EXPECT_NE(decision.reason.find("3.200 s"), std::string::npos) << decision.reason;
}

}  // namespace
}  // namespace tierpilot

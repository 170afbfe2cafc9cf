// Tasks that the policy keeps back for a full node: when they are asked about again, and for how
// long that can go on.
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

constexpr double kTimeTolerance = 1e-6;

// Wants every task on the node that holds its data, and else on the first.
class LoyalPolicy final : public Policy {
 public:
  bool holds() const override { return true; }
  Decision decide(const View& view) override {
    ++asked;
    Decision decision;
    for (size_t i = view.nodes.size(); i-- > 0;) {
      if (view.nodes[i].candidate) decision.node = i;
      if (view.nodes[i].full && view.nodes[i].held_fast_bytes > 0) decision.held_for = i;
    }
    for (size_t i = 0; i < view.nodes.size(); ++i)
      if (view.nodes[i].candidate && view.nodes[i].held_fast_bytes > 0) decision.node = i;
    if (view.may_hold && decision.held_for != kNoNode && !view.nodes[decision.node].held_fast_bytes)
      decision.node = kNoNode;
    else
      decision.held_for = kNoNode;
    return decision;
  }
  int asked = 0;
};

// Two nodes with one unit and no backlog; data of 50 MB takes 50 ms to bring. One task brings it to
// a node, a second keeps this node busy for `busy_ms`, a third wants the data for 20 ms.
struct World {
  explicit World(int busy_ms) : tasks({50 * kMB}) {
    cluster.coordinator.backlog_units = 0;
    tasks.add(0, 10, {{0}});
    tasks.add(100, busy_ms, {{0}});
    tasks.add(101, 20, {{0}});
  }
  ClusterSpec cluster = plain_cluster(2);
  WorkloadBuilder tasks;
  LoyalPolicy policy;
};

TEST(Holding, ATaskWaitsForTheNodeThatHasItsData) {
  World world(30);
  const auto [result, log] = run(world.cluster, world.tasks.workload(), world.policy);
  EXPECT_EQ(result.holds, 1u);
  EXPECT_EQ(result.succeeded, 3u);
  EXPECT_NEAR(log.times[2].response_s, 0.029 + 0.020, kTimeTolerance);
  EXPECT_NEAR(log.times[2].since_decision_s, 0.020, kTimeTolerance);
  EXPECT_NEAR(log.times[2].since_asked_s, 0.049, kTimeTolerance) << "holding it counts";
  EXPECT_EQ(result.fetched_bytes + result.promoted_bytes, 50 * kMB) << "brought once";
}

// The other node would have fetched it in 50 ms and run it in 20.
TEST(Holding, ItWaitsNoLongerThanTheOtherPlacementWouldHaveTaken) {
  World world(100'000);
  const auto [result, log] = run(world.cluster, world.tasks.workload(), world.policy);
  EXPECT_GE(result.holds, 1u);
  EXPECT_GT(log.times[2].response_s, 0.100);
  EXPECT_LT(log.times[2].response_s, 2 * 0.071 + 0.010);
}

TEST(Holding, OthersPassIt) {
  World world(30);
  world.tasks.add(102, 5);
  const auto [result, log] = run(world.cluster, world.tasks.workload(), world.policy);
  EXPECT_NEAR(log.times[3].response_s, 0.005, kTimeTolerance) << "on the idle node";
}

TEST(Holding, ANodeThatFailsLetsThemGo) {
  World world(100'000);
  world.cluster.groups[0].node_failures = {.mean_between_s = 1, .mean_repair_s = 1000};
  world.cluster.coordinator.max_attempts = 1;
  const auto [result, log] = run(world.cluster, world.tasks.workload(), world.policy);
  EXPECT_EQ(result.unfinished, 0u);
}

TEST(Holding, AClusterMayForbidIt) {
  World world(30);
  world.cluster.coordinator.hold_tasks = false;
  const auto [result, log] = run(world.cluster, world.tasks.workload(), world.policy);
  EXPECT_EQ(result.holds, 0u);
  EXPECT_NEAR(log.times[2].response_s, 0.070, kTimeTolerance);
}

TEST(Holding, NobodyIsAskedWithoutNeed) {
  World world(30);
  const auto [result, log] = run(world.cluster, world.tasks.workload(), world.policy);
  EXPECT_EQ(world.policy.asked, 4) << "three tasks, and one of them again";
}

}  // namespace
}  // namespace tierpilot::sim

#include "policies/sim/evaluation/guarded_policy.h"

#include "policies/placement/earliest_finish.h"
#include "policies/placement/fallback.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

const GuardSettings kGuard{.judged = "response"};

// A fast node and one that is ten times as slow.
ClusterSpec unlike_nodes() {
  ClusterSpec cluster = plain_cluster(1);
  cluster.groups.push_back(plain_nodes(1));
  cluster.groups.back().operations_per_s = 1e8;
  return cluster;
}

Workload tasks_of_10_ms(int count) {
  WorkloadBuilder builder;
  for (int i = 0; i < count; ++i) builder.add(200 * i, 10);
  return builder.workload();
}

struct Outcome {
  RunResult result;
  GuardTally guard;
};

Outcome run(std::unique_ptr<Policy> policy, int tasks) {
  GuardedPolicy guarded({std::move(policy), nullptr}, kGuard, 1);
  const auto result =
      simulate(unlike_nodes(), tasks_of_10_ms(tasks), guarded, {.listener = &guarded});
  EXPECT_TRUE(result) << result.error().message;
  return {result.value_or(RunResult{}), guarded.tally()};
}

class FaultyPolicy final : public Policy {
 public:
  Decision decide(const View& view) override {
    return fallback_decide(view, DecisionFault::kUnfamiliar, "never seen");
  }
};

TEST(GuardedPolicy, OneThatIsMuchWorseLosesItsSay) {
  const auto [result, guard] = run(std::make_unique<ScriptedPolicy>(std::vector{1U}), 6000);
  EXPECT_EQ(result.succeeded, 6000u);
  EXPECT_GE(guard.deposed, 1u);
  EXPECT_GT(guard.alone, 3000u);
  // Alone, each would take 0.1 s.
  EXPECT_LT(result.response_s.mean, 0.05);
}

TEST(GuardedPolicy, OneThatIsAsGoodKeepsAllButTheControlShare) {
  const auto [result, guard] = run(make_earliest_finish_policy(1), 6000);
  EXPECT_EQ(guard.deposed, 0u);
  EXPECT_EQ(guard.alone, 0u);
  EXPECT_EQ(guard.faults, 0u);
  EXPECT_NEAR(guard.control, 6000 * kGuard.control_share, 60);
  EXPECT_LT(result.response_s.mean, 0.012);
}

TEST(GuardedPolicy, AnswersThatCannotBeUsedDepose) {
  const auto guard = run(std::make_unique<FaultyPolicy>(), 100).guard;
  EXPECT_EQ(guard.deposed, 1u);
  EXPECT_EQ(guard.faults, kGuard.faults_to_depose);
  EXPECT_EQ(guard.faults + guard.control + guard.alone, 100u);
}

}  // namespace
}  // namespace tierpilot::sim

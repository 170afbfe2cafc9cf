#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "policies/placement/registry.h"
#include "policies/sim/evaluation/bound.h"
#include "policies/sim/evaluation/evaluate.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

EvaluationOptions heuristics(uint32_t threads) {
  return {.policies = {"random", "least-loaded", "earliest-finish"},
          .threads = threads,
          .make_player = heuristic_player};
}

TEST(Bound, OfATaskAloneIsItsRun) {
  WorkloadBuilder builder;
  builder.add(0, 500);
  EXPECT_NEAR(mean_response_bound_s(plain_cluster(1), builder.workload()), 0.5, 1e-9);
}

TEST(Bound, DataMustComeOnce) {
  WorkloadBuilder builder({100 * kMB});
  builder.add(0, 500, {{0, false}});
  EXPECT_NEAR(mean_response_bound_s(plain_cluster(1), builder.workload()), 0.6, 1e-9);
}

TEST(Bound, TasksThatShareAUnitWait) {
  WorkloadBuilder builder;
  builder.add(0, 1000);
  builder.add(0, 1000);
  // One ends after 1 s, the other after 2 s.
  EXPECT_NEAR(mean_response_bound_s(plain_cluster(1), builder.workload()), 1.5, 1e-6);
}

// Ranks that run beside each other are no two jobs of which one could be done before the other.
TEST(Bound, AGangIsOneJob) {
  WorkloadBuilder builder;
  builder.add(0, 1000);
  builder.add(0, 1000);
  auto gang = builder.workload();
  gang.gangs = {{0, 2}};
  for (auto& task : gang.tasks) task.gang = 0;
  EXPECT_NEAR(mean_response_bound_s(plain_cluster(2), gang), 1, 1e-6);
}

EvaluatedRun run_of(const std::string& policy, uint64_t seed, double response_s) {
  EvaluatedRun run{.seed = seed, .policy = policy, .result = {}};
  run.result.tasks = 2;
  run.result.succeeded = response_s > 0 ? 2 : 0;
  run.result.failed = 2 - run.result.succeeded;
  run.result.response_s.mean = run.result.response_s.p99 = response_s;
  if (response_s > 0) run.bound_s = response_s / 2;
  return run;
}

// It is no response of 0 s, which nobody beats.
TEST(Evaluation, ASeedInWhichNothingSucceededCountsForNothing) {
  const Suite suite{.name = "", .cells = {{}}, .seeds = 2};
  const std::vector<EvaluatedRun> runs{run_of("loses", 1, 0),  run_of("loses", 2, 30),
                                       run_of("holds", 1, 20), run_of("holds", 2, 20),
                                       run_of("judged", 1, 0), run_of("judged", 2, 40)};
  const auto value = evaluation_json(suite, runs, {"judged"});
  const auto& cell = value["cells"][0];
  EXPECT_EQ(cell["best_heuristic"], "holds");
  EXPECT_EQ(cell["response_mean_s"], 40);
  EXPECT_DOUBLE_EQ(cell["difference"]["mean"], 1) << "of the second seed alone";
  EXPECT_EQ(cell["bound_share"]["mean"], 0.5);
  EXPECT_TRUE(value["runs"][0]["response_bound_s"].is_null());
}

TEST(Evaluation, NoPolicyBeatsTheBound) {
  const auto suite = make_suite("quick");
  ASSERT_TRUE(suite);
  const auto runs = evaluate(*suite, heuristics(2));
  ASSERT_TRUE(runs) << runs.error().message;
  ASSERT_EQ(runs->size(), suite->cells.size() * suite->seeds * 3);
  for (const auto& run : *runs) {
    EXPECT_EQ(run.result.succeeded, run.result.tasks);
    ASSERT_TRUE(run.bound_s);
    EXPECT_GT(*run.bound_s, 0);
    EXPECT_LE(*run.bound_s, run.result.response_s.mean) << run.policy;
  }
}

TEST(Evaluation, IsTheSameInAnyNumberOfThreads) {
  const auto suite = make_suite("quick");
  ASSERT_TRUE(suite);
  const auto one = evaluate(*suite, heuristics(1));
  const auto three = evaluate(*suite, heuristics(3));
  ASSERT_TRUE(one && three);
  EXPECT_EQ(evaluation_json(*suite, *one, {"random"}), evaluation_json(*suite, *three, {"random"}));
}

// In the order of arrival a short task waits for the long ones before it.
TEST(Evaluation, APlainHeuristicRunsWithoutTheRulesOfTheOthers) {
  auto suite = make_suite("quick");
  ASSERT_TRUE(suite);
  std::erase_if(suite->cells, [](const auto& cell) { return cell.workload.name != "bursts"; });
  auto options = heuristics(2);
  options.plain = {"least-loaded"};
  const auto both = evaluate(*suite, options);
  ASSERT_TRUE(both) << both.error().message;
  for (auto& cell : suite->cells) cell.cluster = without_shared_rules(cell.cluster);
  const auto bare = evaluate(*suite, heuristics(2));
  ASSERT_TRUE(bare);
  ASSERT_EQ(both->size(), suite->seeds * 4);
  for (uint64_t seed = 0; seed < suite->seeds; ++seed) {
    const EvaluatedRun& ruled = both->at(seed * 4 + 1);
    const EvaluatedRun& plain = both->at(seed * 4 + 3);
    EXPECT_EQ(ruled.policy, "least-loaded");
    EXPECT_EQ(plain.policy, "plain-least-loaded");
    EXPECT_EQ(plain.seed, ruled.seed);
    EXPECT_EQ(plain.result.response_s.mean, bare->at(seed * 3 + 1).result.response_s.mean);
    EXPECT_LT(ruled.result.response_s.mean, plain.result.response_s.mean);
  }
}

TEST(Evaluation, UnknownSuitesAreRefusedWithTheNames) {
  const auto suite = make_suite("none");
  ASSERT_FALSE(suite);
  EXPECT_NE(suite.error().message.find("quick"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::sim

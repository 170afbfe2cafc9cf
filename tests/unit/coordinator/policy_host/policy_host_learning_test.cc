// What the learners behind the policies make of what was decided and measured.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "policy_host_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(PolicyHostTest, LearnsFromWhatHeuristicsDid) {
  const auto host = start("random");
  live_through(*host, 0, 40);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").training_steps >= 5; }));
  const LearnerState state = host->learner("dqn");
  EXPECT_EQ(state.decisions, 40u);
  EXPECT_EQ(state.experiences, 39u) << "the last one still waits for the next request";
  EXPECT_EQ(state.pending, 1u);
  EXPECT_GT(state.batches, 0u);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").weights_version > 1; }));
}

// The answer may be on its way to the event loop when that finds the deadline passed.
TEST_F(PolicyHostTest, OnlyTheActionThatWasTakenIsLearnedFrom) {
  const auto host = start("round-robin");
  const auto view = shared(three_nodes(1000));
  EXPECT_EQ(answer(*host, 1, view).decision.node, 0u);
  host->told(1, Finished{0.5});
  (void)host->save();
  EXPECT_EQ(host->learner("dqn").decisions, 0u) << "an answer is not an action";
  EXPECT_EQ(host->learner("dqn").pending, 0u);
  decide(*host, 2);
  host->took(2, view, 2);
  host->took(3, view, 1);
  host->told(2, Finished{0.5});
  (void)host->save();
  EXPECT_EQ(host->learner("dqn").decisions, 2u);
  EXPECT_EQ(host->learner("dqn").experiences, 1u);
}

TEST_F(PolicyHostTest, ThePublishedLearnerSleepsUntilItsPolicyIsUsed) {
  const auto host = start("random");
  live_through(*host, 0, 20);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").decisions == 20; }));
  EXPECT_EQ(host->learner("dqn-published").decisions, 0u);
  ASSERT_TRUE(host->use("dqn-published"));
  live_through(*host, 20, 60);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn-published").batches > 0; }));
}

TEST_F(PolicyHostTest, ManyThreadsMayReportAtOnce) {
  const auto host = start("random");
  constexpr uint64_t kEach = 200;
  const auto view = shared(three_nodes(1e9));
  std::vector<std::thread> threads;
  std::atomic<uint64_t> answered = 0;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t id = t * kEach; id < (t + 1) * kEach; ++id)
        host->decide(id, view, [&](PolicyHost::Decided decided) {
          ++answered;
          host->took(decided.request, view, decided.decision.node);
          host->told(decided.request, Finished{0.1 + 0.001 * static_cast<double>(decided.request)});
        });
      host->learner("dqn");
      host->use(t % 2 ? "random" : "dqn");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return answered == 4 * kEach; }));
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").experiences >= 4 * kEach - 1; }));
}

TEST_F(PolicyHostTest, WhatTheWeightsWereNotTrainedOnIsTheHeuristics) {
  const auto host = start("random");
  live_through(*host, 0, 60);
  ASSERT_TRUE(eventually([&] { return host->learner("dqn").weights_version > 1; }));
  ASSERT_TRUE(host->use("dqn"));
  EXPECT_EQ(decide(*host, 60).decision.fault, DecisionFault::kNone);
  View strange = three_nodes(60'000);
  strange.task.data_bytes = uint64_t{1} << 45;
  const auto decided = decide(*host, 61, strange);
  EXPECT_EQ(decided.decision.fault, DecisionFault::kUnfamiliar);
  EXPECT_LT(decided.decision.node, 3u);
  EXPECT_THAT(decided.decision.reason, HasSubstr("not trained on such a"));
}

}  // namespace
}  // namespace tierpilot::testing

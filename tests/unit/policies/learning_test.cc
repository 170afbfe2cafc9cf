// The promise of the learned policies, on a stand-in cluster. With a narrower network than the
// published one, so that the test stays short.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/learning/torch_thread.h"
#include "tests/support/toy_run.h"

namespace tierpilot {
namespace {

TEST(Learning, PublishedBeatsRandomAndIsNotFarFromTheBestHeuristic) {
  use_one_torch_thread();
  PolicyContext context;
  context.published.network.width = 64;
  context.published.network.feed_forward = 128;
  ToyRun toy("dqn-published", context, {.offered_load = 0.3});
  const double random = toy.run("random", 300).reward_mean;
  const double least_loaded = toy.run("least-loaded", 300).reward_mean;
  const double locality = toy.run("locality-greedy", 300).reward_mean;
  const double learned = toy.run("dqn-published", 300).reward_mean;
  EXPECT_GT(learned, random * 1.1);
  EXPECT_GT(learned, std::max(least_loaded, locality) * 0.95);
}

// Untrained it decides by the estimate, and what it learns must not make that worse.
TEST(Learning, DqnHoldsAgainstEveryHeuristicFromItsFirstTask) {
  use_one_torch_thread();
  PolicyContext context;
  context.dqn.epsilon = 0;
  context.dqn.train_start = 128;
  ToyRun toy("dqn", context, {.offered_load = 0.6, .speed_spread = 2, .backlog_units = 2});
  double best = 1e9;
  for (const char* name : {"random", "least-loaded", "locality-greedy", "locality-load"})
    best = std::min(best, toy.run(name, 500).response_ms_mean);
  EXPECT_LT(toy.run("dqn", 2000).response_ms_mean, best * 1.05);
  EXPECT_GT(toy.learner().counters().batches, 100u);
}

}  // namespace
}  // namespace tierpilot

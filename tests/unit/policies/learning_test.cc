// The promise of the learned policies, on a stand-in cluster. With a narrower network than the
// published one, so that the test stays short.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/placement/dqn/module.h"
#include "policies/placement/published/module.h"
#include "tests/support/toy_run.h"

namespace tierpilot {
namespace {

TEST(Learning, PublishedBeatsRandomAndIsNotFarFromTheBestHeuristic) {
  PublishedSettings settings;
  settings.network.width = 64;
  settings.network.feed_forward = 128;
  ToyRun toy(published_module(settings), 1, {.offered_load = 0.3});
  const double random = toy.run("random", 300).reward_mean;
  const double least_loaded = toy.run("least-loaded", 300).reward_mean;
  const double locality = toy.run("locality-greedy", 300).reward_mean;
  const double learned = toy.run("dqn-published", 300).reward_mean;
  EXPECT_GT(learned, random * 1.1);
  EXPECT_GT(learned, std::max(least_loaded, locality) * 0.95);
}

// It decides by the estimate from the start, and learns what the estimate does not know.
TEST(Learning, DqnHoldsAgainstEveryHeuristic) {
  const ToySettings cluster{.nodes = 6,
                            .datasets = 60,
                            .offered_load = 0.4,
                            .mean_compute_s = 0.15,
                            .speed_spread = 2,
                            .backlog_units = 2};
  ToyRun toy(dqn_module({.epsilon = 0}), 1, cluster);
  double best = 1e9;
  for (const char* name : {"random", "least-loaded", "locality-greedy", "locality-load"})
    best = std::min(best, toy.run(name, 1000).response_ms_mean);
  EXPECT_LT(toy.run("dqn", 1000).response_ms_mean, best * 1.05);
  EXPECT_GT(toy.learner().counters().batches, 100u);
}

}  // namespace
}  // namespace tierpilot

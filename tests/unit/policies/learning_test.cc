// The promise of the learned policy, on a stand-in cluster: after watching heuristics it beats
// random clearly. With a narrower network than the published one, so that the test stays short.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/toy_run.h"

namespace tierpilot {
namespace {

TEST(Learning, BeatsRandomAndIsNotFarFromTheBestHeuristic) {
  use_one_torch_thread();
  DqnSettings settings;
  settings.network.width = 64;
  settings.network.feed_forward = 128;
  ToyRun toy(settings, {.offered_load = 0.3}, 1);
  const double random = toy.run("random", 300).reward_mean;
  const double least_loaded = toy.run("least-loaded", 300).reward_mean;
  const double locality = toy.run("locality-greedy", 300).reward_mean;
  const double learned = toy.run("dqn", 300).reward_mean;
  EXPECT_GT(learned, random * 1.1);
  EXPECT_GT(learned, std::max(least_loaded, locality) * 0.95);
}

}  // namespace
}  // namespace tierpilot

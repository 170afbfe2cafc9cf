#include "policies/sim/evaluation/training.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/probe/scratch_directory.h"

namespace tierpilot::sim {
namespace {

TrainingSettings small() {
  TrainingSettings settings;
  settings.search = {.generations = 6, .population = 12, .runs = 8, .runs_each = 4, .tasks = 120};
  settings.episodes = 4;
  settings.tasks = 100;
  settings.trial_interval = 2;
  settings.trials = 3;
  settings.dqn.train_start = 64;
  return settings;
}

DqnWeights train(const TrainingSettings& settings, uint32_t threads) {
  Training training(settings);
  const auto status = training.run(
      threads, [](const Generation&) { return true; },
      [](const Training::Episode&) { return true; });
  EXPECT_TRUE(status) << status.error().message;
  return training.weights();
}

TEST(TrainingRun, IsOfAClusterThatIsNotOverloaded) {
  SeededRandom random(3);
  const auto run = draw_training_run(random, 150);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_GT(run->best_response_s, 0);
  const auto least_cost =
      run->compare(*make_externality_policy(least_cost_externality(), kAllFeatures));
  ASSERT_TRUE(least_cost);
  EXPECT_GT(*least_cost, -0.5);
}

// On the very runs that it searches with, the search ends better than it began.
TEST(ExternalitySearch, FindsBetterWeightsThanItStartsFrom) {
  SearchSettings settings{
      .generations = 12, .population = 16, .runs = 6, .runs_each = 6, .tasks = 200};
  SeededRandom random(5);
  std::vector<double> costs;
  const auto weights =
      search_externality(settings, kAllFeatures, 2, random, [&](const Generation& generation) {
        costs.push_back(generation.cost);
        return true;
      });
  ASSERT_TRUE(weights) << weights.error().message;
  ASSERT_EQ(costs.size(), 12u);
  EXPECT_LT(costs.back(), costs.front());
  EXPECT_NE(*weights, least_cost_externality());
}

TEST(ExternalitySearch, OfNoGenerationsIsLeastCost) {
  SeededRandom random(5);
  const auto weights = search_externality({.generations = 0}, kAllFeatures, 1, random,
                                          [](const Generation&) { return true; });
  ASSERT_TRUE(weights);
  EXPECT_EQ(*weights, least_cost_externality());
}

TEST(Training, OfEqualSettingsGivesEqualWeightsInAnyNumberOfThreads) {
  const DqnWeights one = train(small(), 1);
  const DqnWeights three = train(small(), 3);
  EXPECT_EQ(one.others, three.others);
  EXPECT_EQ(one.own.weights(), three.own.weights());
  TrainingSettings other = small();
  other.seed = 2;
  EXPECT_NE(train(other, 1).others, one.others);
}

TEST(Training, LeavesOutWhatItIsToldTo) {
  TrainingSettings settings = small();
  settings.dqn.features = without(FeatureGroup::kLoad);
  const DqnWeights weights = train(settings, 2);
  EXPECT_NE(weights.others, kNoExternality);
}

TEST(TrainingSettings, NamesEachUnknownKeyWithItsLine) {
  const ScratchDirectory folder;
  const std::string path = folder.path() + "/train.toml";
  std::ofstream(path) << "[training]\nseed = 3\n[search]\ngenerations = 2\nfutures = 1\n";
  const auto settings = read_training_settings(path);
  ASSERT_FALSE(settings);
  EXPECT_NE(settings.error().message.find("futures"), std::string::npos);
  EXPECT_NE(settings.error().message.find('5'), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::sim

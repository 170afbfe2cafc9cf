#include "policies/sim/evaluation/training.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "policies/placement/registry.h"
#include "tests/support/scratch_directory.h"

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
  const auto heuristic =
      run->compare(*make_externality_policy(delay_finish_externality(), kAllFeatures));
  ASSERT_TRUE(heuristic);
  EXPECT_GT(*heuristic, -0.5);
}

// Where the search begins. Node 0 is full and has the data; the others are loaded unlike.
TEST(ExternalityPolicy, DecidesAsDelayFinishWithItsWeights) {
  View view{.task = {.operations = 1e9, .data_bytes = 1 << 28}, .may_hold = true};
  for (uint32_t i = 0; i < 4; ++i)
    view.nodes.push_back({.slot = i,
                          .candidate = i > 0,
                          .full = i == 0,
                          .assigned = 4 - i,
                          .units = 2,
                          .fast_budget_bytes = 1 << 30,
                          .held_fast_bytes = i == 0 ? 1U << 28 : i << 24,
                          .assigned_operations = (4 - i) * 1e9,
                          .rates = {.operations_per_s = 1e9}});
  const auto searched = make_externality_policy(delay_finish_externality(), kAllFeatures);
  const auto heuristic = *make_policy("delay-finish");
  std::set<size_t> waited_for;
  for (const double rate : {1e6, 1e7, 1e8, 1e9, 1e10}) {
    for (NodeState& node : view.nodes) node.rates.fetch_bytes_per_s = rate;
    const Decision one = searched->decide(view);
    const Decision other = heuristic->decide(view);
    EXPECT_EQ(one.node, other.node) << rate;
    EXPECT_EQ(one.held_for, other.held_for) << rate;
    waited_for.insert(one.held_for);
  }
  EXPECT_EQ(waited_for, (std::set<size_t>{0, kNoNode})) << "both are tried";
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
  EXPECT_NE(*weights, delay_finish_externality());
}

TEST(ExternalitySearch, OfNoGenerationsIsDelayFinish) {
  SeededRandom random(5);
  const auto weights = search_externality({.generations = 0}, kAllFeatures, 1, random,
                                          [](const Generation&) { return true; });
  ASSERT_TRUE(weights);
  EXPECT_EQ(*weights, delay_finish_externality());
}

TEST(ExternalitySearch, StartsFromTheWeightsThatItIsGiven) {
  ExternalityWeights start{};
  start[0] = 0.25;
  SeededRandom random(5);
  const auto weights = search_externality({.start = start, .generations = 0}, kAllFeatures, 1,
                                          random, [](const Generation&) { return true; });
  ASSERT_TRUE(weights);
  EXPECT_EQ(*weights, start);
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

TEST(TrainingSettings, TakeTheSearchsStartByTheNamesOfTheTerms) {
  const ScratchDirectory folder;
  const std::string path = folder.path() + "/train.toml";
  std::ofstream(path) << "[externality]\n\"q wait\" = 0.25\nserve = -2\n";
  const auto settings = read_training_settings(path);
  ASSERT_TRUE(settings) << settings.error().message;
  ExternalityWeights expected = delay_finish_externality();
  for (size_t i = 0; i < kExternalityCount; ++i) {
    if (kExternalityTerms[i].name == "q wait") expected[i] = 0.25;
    if (kExternalityTerms[i].name == "serve") expected[i] = -2;
  }
  EXPECT_EQ(settings->search.start, expected);
  EXPECT_NE(describe(*settings), describe(TrainingSettings{})) << "other weights would come of it";
}

TEST(TrainingSettings, NameATermThatDoesNotExistAndAWeightThatCannotBe) {
  const ScratchDirectory folder;
  const std::string path = folder.path() + "/train.toml";
  std::ofstream(path) << "[externality]\nsolve = 1\nserve = nan\n";
  const auto settings = read_training_settings(path);
  ASSERT_FALSE(settings);
  EXPECT_NE(settings.error().message.find(":2: externality.solve"), std::string::npos)
      << settings.error().message;
  EXPECT_NE(settings.error().message.find(":3: externality.serve"), std::string::npos)
      << settings.error().message;
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

#include "policies/sim/evaluation/teacher.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/overloaded.h"
#include "policies/placement/dqn/module.h"
#include "policies/placement/published/module.h"
#include "policies/placement/registry.h"
#include "policies/sim/evaluation/guarded_policy.h"
#include "policies/sim/generator.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

// What a learner was told, and how often it trained.
struct Told {
  std::vector<uint64_t> decided, served, finished, abandoned;
  std::vector<size_t> nodes;  // of the decisions
  int batches = 0;
  int copies = 0;
};

class RecordingLearner final : public Learner {
 public:
  explicit RecordingLearner(Told& told) : told_(told) {}
  void decided(uint64_t id, const View&, size_t node) override {
    told_.decided.push_back(id);
    told_.nodes.push_back(node);
  }
  void told(uint64_t id, const tierpilot::Outcome& outcome) override {
    std::visit(Overloaded{[&](const DataServed&) { told_.served.push_back(id); },
                          [&](const Finished& end) {
                            EXPECT_GT(end.response_s, 0);
                            told_.finished.push_back(id);
                            ++credit_;
                          },
                          [&](Abandoned) { told_.abandoned.push_back(id); }},
               outcome);
  }
  bool ready() const override { return credit_ >= 4; }
  void train_batch() override { ++told_.batches, credit_ -= 4; }
  void copy_weights() override {}
  void copy_weights_if_due() override { ++told_.copies; }
  LearnerCounters counters() const override { return {}; }
  std::string save() const override { return {}; }
  Status restore(std::string_view) override { return {}; }
  std::string save_weights() const override { return {}; }
  Status restore_weights(std::string_view) override { return {}; }

 private:
  Told& told_;
  int credit_ = 0;
};

Workload reading_tasks(int count) {
  WorkloadBuilder builder({kMB});
  for (int i = 0; i < count; ++i) builder.add(20 * i, 10, {{0, false}});
  return builder.workload();
}

std::set<uint64_t> unique(const std::vector<uint64_t>& ids) {
  return {ids.begin(), ids.end()};
}

TEST(LearnDuringRun, TellsEveryDecisionAndWhatCameOfIt) {
  Told told;
  const auto listener = learn_during_run(std::make_unique<RecordingLearner>(told));
  ScriptedPolicy policy({0, 1});
  const auto result =
      simulate(plain_cluster(2), reading_tasks(40), policy, {.listener = listener.get()});
  ASSERT_TRUE(result);
  EXPECT_EQ(unique(told.decided).size(), 40u);
  EXPECT_EQ(unique(told.served), unique(told.decided));
  EXPECT_EQ(unique(told.finished), unique(told.decided));
  EXPECT_TRUE(told.abandoned.empty());
  EXPECT_EQ(told.batches, 10);
  EXPECT_GE(told.copies, 40);
}

TEST(LearnDuringRun, AnAttemptThatAFailureEndedIsAnotherOneThanTheNext) {
  Told told;
  const auto listener = learn_during_run(std::make_unique<RecordingLearner>(told));
  auto cluster = plain_cluster(2);
  cluster.groups[0].node_failures = {.mean_between_s = 1, .mean_repair_s = 0.1};
  cluster.coordinator.max_attempts = 100;
  ScriptedPolicy policy({0, 1});
  const auto result = simulate(cluster, reading_tasks(1000), policy, {.listener = listener.get()});
  ASSERT_TRUE(result);
  ASSERT_GT(result->restarts, 0u);
  EXPECT_EQ(unique(told.decided).size(), told.decided.size());
  EXPECT_EQ(told.finished.size(), result->succeeded);
  EXPECT_LT(told.finished.size(), told.decided.size());
}

// The guard's decisions are learned from as well: what is told is where the task went.
TEST(LearnDuringRun, UnderAGuardLearnsFromTheFallbacksDecisionsToo) {
  Told told;
  GuardedPolicy guarded({std::make_unique<ScriptedPolicy>(std::vector{1U}),
                         learn_during_run(std::make_unique<RecordingLearner>(told))},
                        {.control_share = 0.5}, 1);
  auto cluster = plain_cluster(1);
  cluster.groups.push_back(plain_nodes(1));
  cluster.groups.back().operations_per_s = 1e8;  // the fallback soon avoids it
  const auto result = simulate(cluster, reading_tasks(400), guarded, {.listener = &guarded});
  ASSERT_TRUE(result);
  EXPECT_EQ(told.decided.size(), 400u);
  EXPECT_EQ(told.finished.size(), 400u);
  EXPECT_GT(std::count(told.nodes.begin(), told.nodes.end(), 0u), 100);
  EXPECT_GT(std::count(told.nodes.begin(), told.nodes.end(), 1u), 50);
}

struct Versions final : Listener {
  explicit Versions(Listener& next) : next(next) {}
  void decided(Attempt attempt, const View& view, const Decision& decision) override {
    if (decision.weights_version > 0) newest = std::max(newest, decision.weights_version);
    next.decided(attempt, view, decision);
  }
  void served(Attempt attempt, const ServiceMeasure& measure, const RewardParts& reward) override {
    next.served(attempt, measure, reward);
  }
  void abandoned(Attempt attempt) override { next.abandoned(attempt); }
  void finished(Attempt attempt, const TaskTimes& times) override { next.finished(attempt, times); }
  Listener& next;
  uint64_t newest = 0;
};

struct LearnedRun {
  double response_s = 0;
  uint64_t newest_version = 0;
  bool operator==(const LearnedRun&) const = default;
};

LearnedRun learned_run(const std::string& name) {
  auto modules = placement_modules();
  modules.put(dqn_module({.train_start = 32, .batch = 32}));
  PublishedSettings published;
  published.network = {.width = 16, .layers = 1, .heads = 2, .feed_forward = 16};
  published.train_start = published.batch = 32;
  modules.put(published_module(published));
  auto [policy, taught, begins_from] = *modules.find(name)->learning->start(7, 1024);
  const auto learner = learn_during_run(std::move(taught));
  Versions versions(*learner);
  GeneratorOptions options;
  options.tasks = 600;
  options.datasets = 30;
  options.min_dataset_bytes = 2 * kMB;
  options.max_dataset_bytes = 40 * kMB;
  const auto cluster = plain_cluster(4, 2);
  const auto result =
      simulate(cluster, generate(options, cluster, 3), *policy, {.listener = &versions});
  EXPECT_TRUE(result) << result.error().message;
  return {result ? result->response_s.mean : 0, versions.newest};
}

class LearningPolicies : public testing::TestWithParam<const char*> {};

TEST_P(LearningPolicies, DecideWithWhatTheyLearnedDuringTheRun) {
  EXPECT_GT(learned_run(GetParam()).newest_version, 3u);
}

TEST_P(LearningPolicies, GiveEqualRunsForEqualSeeds) {
  const auto first = learned_run(GetParam());
  EXPECT_EQ(first, learned_run(GetParam()));
  EXPECT_GT(first.response_s, 0);
}

INSTANTIATE_TEST_SUITE_P(All, LearningPolicies, testing::Values("dqn", "dqn-published"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tierpilot::sim

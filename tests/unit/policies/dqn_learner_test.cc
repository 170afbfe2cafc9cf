#include "policies/placement/dqn/dqn_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/placement/dqn/dqn_policy.h"
#include "tests/unit/policies/dqn_scene.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

DqnSettings quick() {
  DqnSettings settings;
  settings.batch = 32;
  settings.train_start = 64;
  settings.batches_per_experience = 2;
  settings.learning_rate = 3e-3;
  return settings;
}

// Nodes whose slot is odd take three times as long as the estimate says.
void live_through(DqnLearner& learner, int tasks) {
  for (int i = 0; i < tasks; ++i) {
    View view = random_view(4, static_cast<uint64_t>(i));
    for (NodeState& node : view.nodes) node.gpu_milli = node.slot % 2 == 0 ? 0 : 1000;
    for (NodeState& node : view.nodes) node.free_gpu_milli = node.gpu_milli;
    const size_t node = static_cast<size_t>(i) % 4;
    if (!view.nodes[node].candidate) continue;
    const auto id = static_cast<uint64_t>(i);
    learner.decided(id, view, node);
    const double estimate_s =
        estimate_finish(view.task, view.nodes[node], typical_rates(view)).finish_s();
    learner.told(id, Finished{estimate_s * (node % 2 == 0 ? 1 : 3)});
    while (learner.ready()) learner.train_batch();
    learner.copy_weights_if_due();
  }
}

// How much dearer the odd nodes are than the even ones, by what was learned: the mean ratio.
double learned_ratio(const DqnWeights& weights) {
  double sum = 0;
  int count = 0;
  TokenValuer valuer;
  for (uint64_t seed = 5000; seed < 5100; ++seed) {
    View view = random_view(4, seed);
    for (NodeState& node : view.nodes) node.candidate = true;
    for (NodeState& node : view.nodes) node.gpu_milli = node.slot % 2 == 0 ? 0 : 1000;
    for (NodeState& node : view.nodes) node.free_gpu_milli = node.gpu_milli;
    TokenSet tokens;
    make_tokens(view, kAllFeatures, kNoExternality, kAll, tokens);
    const auto& values = valuer.values(weights, tokens);
    for (size_t i = 1; i < 4; i += 2) {
      if (tokens.prior[i] < -kWorst / 4) continue;
      sum += values[i] / tokens.prior[i];
      ++count;
    }
  }
  return sum / count;
}

TEST(DqnLearner, LearnsWhatTheEstimateDoesNotKnow) {
  auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
  DqnLearner learner(quick(), 1, 64, mailbox);
  live_through(learner, 1500);
  EXPECT_NEAR(learned_ratio(learner.weights()), 3, 0.6);
  EXPECT_GT(mailbox->newest()->version, 1u);
}

// Another policy may choose a node that the network would not even have looked at.
TEST(DqnLearner, LearnsOfChoicesBeyondTheBestToo) {
  DqnSettings settings = quick();
  settings.tokens = 4;
  DqnLearner learner(settings, 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  View view = random_view(50, 3);
  for (NodeState& node : view.nodes) node.candidate = true;
  for (size_t node = 0; node < view.nodes.size(); ++node) {
    learner.decided(node, view, node);
    learner.told(node, Finished{1 + static_cast<double>(node)});
  }
  const LearnerCounters now = learner.counters();
  EXPECT_EQ(now.experiences, 49u);
  EXPECT_EQ(now.pending, 1u) << "the last one waits for the next decision";
}

TEST(DqnLearner, LearnsTheSameWithPriorities) {
  DqnSettings settings = quick();
  settings.priority = 0.6;
  DqnLearner learner(settings, 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  live_through(learner, 1500);
  EXPECT_NEAR(learned_ratio(learner.weights()), 3, 0.6) << "the weights undo the choice";
}

TEST(DqnLearner, KeepsWhatOthersPay) {
  auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
  DqnLearner learner(quick(), 1, 64, mailbox);
  DqnWeights start = learner.weights();
  start.others = delay_finish_externality();
  ASSERT_TRUE(learner.start_from(start));
  live_through(learner, 300);
  EXPECT_EQ(mailbox->newest()->others, start.others);
  DqnLearner second(quick(), 2, 64, std::make_shared<Mailbox<DqnWeights>>());
  ASSERT_TRUE(second.restore(learner.save()));
  EXPECT_EQ(second.weights().others, start.others);
}

TEST(DqnLearner, GoesOnFromWhatItSavedAndRefusesDamage) {
  DqnLearner first(quick(), 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  live_through(first, 300);
  first.decided(1000, random_view(3, 1), 0);
  const std::string saved = first.save();
  DqnLearner second(quick(), 2, 64, std::make_shared<Mailbox<DqnWeights>>());
  ASSERT_TRUE(second.restore(saved));
  EXPECT_EQ(second.weights().own.weights(), first.weights().own.weights());
  EXPECT_EQ(second.counters().pending, first.counters().pending);
  EXPECT_EQ(second.counters().replay_size, first.counters().replay_size);
  EXPECT_EQ(second.counters().decisions, first.counters().decisions);
  while (first.ready()) first.train_batch();
  ASSERT_TRUE(second.restore(first.save()));
  EXPECT_FALSE(second.ready()) << "what was used up is used again";
  EXPECT_GT(second.counters().weights_version, first.counters().weights_version);
  for (size_t size = 0; size < saved.size(); size += 1 + saved.size() / 200)
    ASSERT_FALSE(second.restore(std::string_view(saved).substr(0, size))) << size;
  DqnSettings other = quick();
  other.features = without(FeatureGroup::kLoad);
  DqnLearner third(other, 2, 64, std::make_shared<Mailbox<DqnWeights>>());
  EXPECT_THAT(third.restore(saved).error().message, HasSubstr("other features"));
}

TEST(DqnLearner, BeginsFromAFileThatWasSavedBeforeItLearned) {
  const DqnLearner untouched(quick(), 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  DqnLearner restarted(quick(), 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  ASSERT_TRUE(restarted.restore(untouched.save()));
  live_through(restarted, 1500);
  EXPECT_NEAR(learned_ratio(restarted.weights()), 3, 0.6);
}

TEST(DqnLearner, GoesBackToTheBeginningAndLearnsAnew) {
  DqnLearner learner(quick(), 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  const std::string beginning = learner.save_weights();
  live_through(learner, 1500);
  const double learned = learned_ratio(learner.weights());
  ASSERT_TRUE(learner.restore_weights(beginning));
  EXPECT_LT(learned_ratio(learner.weights()), learned / 2);
  EXPECT_TRUE(learner.weights().own.blank());
  live_through(learner, 1500);
  EXPECT_NEAR(learned_ratio(learner.weights()), 3, 0.6);
}

// The value of a decision that is taken again and again, each time at twice the cost that the
// estimate says, in units of that estimate.
double learned_value(const DqnSettings& settings) {
  DqnLearner learner(settings, 1, 64, std::make_shared<Mailbox<DqnWeights>>());
  DqnWeights weights = learner.weights();
  weights.others.fill(0.5);
  EXPECT_TRUE(learner.start_from(weights));
  const View view = random_view(1, 7);
  const double estimate_s =
      estimate_finish(view.task, view.nodes[0], typical_rates(view)).finish_s();
  for (uint64_t id = 0; id < 2000; ++id) {
    learner.decided(id, view, 0);
    const double all_differ = 1e-9 * static_cast<double>(id);
    learner.told(id, Finished{2 * estimate_s * (1 + all_differ)});
    while (learner.ready()) learner.train_batch();
    learner.copy_weights_if_due();
  }
  TokenSet tokens;
  make_tokens(view, settings.features, weights.others, kAll, tokens);
  EXPECT_LT(tokens.others[0], -0.5);
  tokens.others[0] = 0;
  return TokenValuer().values(learner.weights(), tokens)[0];
}

TEST(DqnLearner, WithoutGammaAValueIsTheCostOfTheDecisionAlone) {
  EXPECT_NEAR(learned_value(quick()), -2, 0.1);
}

// 1 + 1/2 + 1/4 + ... times the cost, however it is summed; what others pay is never measured and
// no part of it.
TEST(DqnLearner, WithGammaAValueIsTheDiscountedCostOfAllThatFollows) {
  DqnSettings settings = quick();
  settings.gamma = 0.5;
  EXPECT_NEAR(learned_value(settings), -4, 0.2) << "bootstrapped";
  settings.double_dqn = false;
  EXPECT_NEAR(learned_value(settings), -4, 0.2) << "bootstrapped by one network";
  settings.return_steps = 4;
  EXPECT_NEAR(learned_value(settings), -4, 0.2) << "four steps";
  settings.return_steps = 64;
  EXPECT_NEAR(learned_value(settings), -4, 0.2) << "Monte-Carlo";
}

}  // namespace
}  // namespace tierpilot

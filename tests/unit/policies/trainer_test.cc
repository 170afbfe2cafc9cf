#include "policies/placement/published/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policies/placement/published/q_network.h"
#include "tests/unit/policies/experiences.h"

namespace tierpilot {
namespace {

using Layout = ObservationLayout;

PublishedSettings small() {
  PublishedSettings settings;
  settings.network.width = 32;
  settings.network.feed_forward = 64;
  settings.network.layers = 1;
  settings.replay_capacity = 256;
  settings.train_start = 64;
  settings.batch = 32;
  settings.learning_rate = 1e-3;
  return settings;
}

// Two nodes; the reward is the overlap of the chosen one.
PublishedExperience overlap_experience(std::mt19937_64& generator) {
  std::uniform_real_distribution<float> share(0, 1);
  Observation seen;
  seen.values.assign(Layout::kSize, 0.0F);
  seen.present = seen.candidates = SlotMask(3);
  seen.exchangeable = true;
  for (size_t slot : {0, 1}) seen.values[Layout::kOverlap + slot] = share(generator);
  const auto action = static_cast<uint32_t>(generator() % 2);
  const double reward = seen.values[Layout::kOverlap + action];
  auto observation = std::make_shared<const Observation>(std::move(seen));
  return {observation, observation, action, reward};
}

void train(PublishedTrainer& trainer, int batches) {
  for (int i = 0; i < batches && trainer.ready(); ++i) trainer.train_batch();
}

double greedy_share(const PublishedTrainer& trainer) {
  std::mt19937_64 generator(99);
  int right = 0;
  for (int i = 0; i < 200; ++i) {
    const Observation seen = *overlap_experience(generator).seen;
    const auto q = trainer.published()->network.q_values(seen.values);
    right += (q[0] > q[1]) == (seen.values[Layout::kOverlap] > seen.values[Layout::kOverlap + 1]);
  }
  return right / 200.0;
}

class TrainerForm : public ::testing::TestWithParam<std::tuple<InputTokens, LossForm>> {};

// Of decisions that are right after training.
double learned_share(PublishedSettings settings) {
  settings.gamma = 0.2;
  settings.batches_per_experience = 2;
  PublishedTrainer trainer(settings, 5);
  std::mt19937_64 generator(1);
  for (int i = 0; i < 250; ++i) trainer.add(overlap_experience(generator));
  for (int round = 0; round < 5; ++round) {
    train(trainer, 80);
    trainer.publish();
  }
  return greedy_share(trainer);
}

TEST_P(TrainerForm, LearnsWhichNodeIsBetter) {
  PublishedSettings settings = small();
  std::tie(settings.network.tokens, settings.loss) = GetParam();
  EXPECT_GT(learned_share(settings), 0.85);
}

INSTANTIATE_TEST_SUITE_P(
    All, TrainerForm,
    ::testing::Combine(::testing::Values(InputTokens::kWhole, InputTokens::kPerFeature),
                       ::testing::Values(LossForm::kWeighted, LossForm::kWeightedSquare)));

TEST(PublishedTrainer, IsRepeatableForASeed) {
  const auto weights_of = [] {
    PublishedTrainer trainer(small(), 5);
    std::mt19937_64 generator(1);
    for (int i = 0; i < 100; ++i) trainer.add(overlap_experience(generator));
    train(trainer, 10);
    return trainer.publish()->network.weights();
  };
  EXPECT_EQ(weights_of(), weights_of());
}

TEST(PublishedTrainer, WaitsForEnoughExperiencesAndStopsWhenTheyAreUsedUp) {
  PublishedSettings settings = small();
  settings.batches_per_experience = 0.5;
  PublishedTrainer trainer(settings, 5);
  std::mt19937_64 generator(1);
  for (int i = 0; i < 63; ++i) trainer.add(overlap_experience(generator));
  EXPECT_FALSE(trainer.ready());
  trainer.add(overlap_experience(generator));
  EXPECT_TRUE(trainer.ready());
  train(trainer, 1000);
  EXPECT_EQ(trainer.batches(), 32u);
  EXPECT_EQ(trainer.steps(), 4u);
  for (int i = 0; i < 2; ++i) trainer.add(overlap_experience(generator));
  EXPECT_TRUE(trainer.ready());
}

TEST(PublishedTrainer, PublishedFormUsesEveryExperienceOnce) {
  PublishedSettings settings = PublishedSettings::published();
  settings.network = small().network;
  settings.replay_capacity = settings.train_start = 64;
  settings.batch = 8;
  PublishedTrainer trainer(settings, 5);
  std::mt19937_64 generator(1);
  for (int i = 0; i < 64; ++i) trainer.add(overlap_experience(generator));
  train(trainer, 1000);
  EXPECT_EQ(trainer.steps(), 1u);
  EXPECT_EQ(trainer.replay().size(), 0u);
  EXPECT_FALSE(trainer.ready());
}

TEST(PublishedTrainer, DecidesWithCopiesOnly) {
  PublishedTrainer trainer(small(), 5);
  const auto first = trainer.published();
  const auto before = first->network.weights();
  std::mt19937_64 generator(1);
  for (int i = 0; i < 100; ++i) trainer.add(overlap_experience(generator));
  train(trainer, 5);
  EXPECT_EQ(first->network.weights(), before);
  EXPECT_TRUE(trainer.changed());
  const auto second = trainer.publish();
  EXPECT_FALSE(trainer.changed());
  EXPECT_EQ(second->version, first->version + 1);
  EXPECT_NE(second->network.weights(), before);
}

TEST(PublishedTrainer, DoubleDqnLearnsToo) {
  PublishedSettings settings = small();
  settings.double_dqn = true;
  PublishedTrainer trainer(settings, 5);
  std::mt19937_64 generator(1);
  for (int i = 0; i < 100; ++i) trainer.add(overlap_experience(generator));
  train(trainer, 20);
  EXPECT_EQ(trainer.batches(), 20u);
  EXPECT_TRUE(std::isfinite(trainer.loss()));
}

TEST(PublishedTrainer, AsManyOutputsAsNodesAreEnough) {
  PublishedSettings settings = small();
  settings.network.outputs = 2;
  EXPECT_LT(QNetwork(settings.network, 1).weight_count(),
            QNetwork(small().network, 1).weight_count());
  EXPECT_GT(learned_share(settings), 0.85);
}

TEST(PublishedTrainer, TakesOverWhatAnotherSaved) {
  PublishedTrainer first(small(), 5);
  std::mt19937_64 generator(1);
  for (int i = 0; i < 100; ++i) first.add(overlap_experience(generator));
  train(first, 10);
  PublishedCheckpoint checkpoint;
  first.save_to(checkpoint);

  PublishedTrainer second(small(), 6);
  ASSERT_TRUE(second.restore(checkpoint));
  EXPECT_EQ(second.published()->network.weights(), first.publish()->network.weights());
  EXPECT_EQ(second.replay().size(), 100u);
  EXPECT_EQ(second.batches(), 10u);
  EXPECT_GT(second.published()->version, checkpoint.progress.weights_version);

  PublishedSettings wider = small();
  wider.network.width = 64;
  PublishedTrainer other(wider, 6);
  const auto refused = other.restore(checkpoint);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);

  PublishedSettings fewer = small();
  fewer.network.outputs = 64;
  EXPECT_FALSE(PublishedTrainer(fewer, 6).restore(checkpoint));
}

// With the gradient through the criticality factor an error beyond 1.1 grows instead of shrinking.
TEST(PublishedTrainer, MendedLossCorrectsLargeErrorsAndThePublishedOneDoesNot) {
  const auto error_after = [](LossForm form) {
    PublishedSettings settings = small();
    settings.network.dropout = 0;
    settings.optimizer = OptimizerKind::kSgd;
    settings.learning_rate = 0.05;
    settings.loss = form;
    QTrainee trainee(settings, 3);
    const auto seen = testing_experiences::observation(1)->values;
    const TrainingBatch batch{seen, {0}, {3.0F}};
    for (int i = 0; i < 100; ++i) trainee.fit(batch);
    return std::abs(3.0F - trainee.network().q_values(seen)[0]);
  };
  const float at_start = 3.0F;
  EXPECT_LT(error_after(LossForm::kWeighted), at_start * 0.5F);
  EXPECT_GT(error_after(LossForm::kPublished), at_start);
}

}  // namespace
}  // namespace tierpilot

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "policies/placement/published/q_network.h"
#include "policies/placement/published/q_trainee.h"

namespace tierpilot {
namespace {

// Of a value of about one: single precision, summed in another order.
constexpr float kTolerance = 2e-5F;

std::vector<float> random_observations(size_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<float> one(0, 1);
  std::vector<float> values(count * ObservationLayout::kSize);
  for (float& value : values) value = one(generator);
  return values;
}

void expect_same_values(const QNetwork& network, uint64_t seed) {
  constexpr size_t kSize = ObservationLayout::kSize;
  const auto observations = random_observations(8, seed);
  for (size_t i = 0; i < observations.size(); i += kSize) {
    const auto observation = std::span(observations).subspan(i, kSize);
    const auto ours = network.q_values(observation);
    const auto torchs = network.q_values_by_torch(observation);
    ASSERT_EQ(ours.size(), torchs.size());
    for (size_t slot = 0; slot < ours.size(); ++slot)
      ASSERT_NEAR(ours[slot], torchs[slot], kTolerance * std::max(1.0F, std::abs(torchs[slot])));
  }
}

NetworkSettings of_width(int64_t width, int64_t feed_forward) {
  NetworkSettings settings;
  settings.width = width;
  settings.feed_forward = feed_forward;
  return settings;
}

TEST(OneTokenNet, HasTheValuesOfLibtorch) {
  // Values near one instead of near zero, so that a wrong part of the network shows.
  NetworkSettings published;
  published.output_sigma = 0.2;
  expect_same_values(QNetwork(published, 1), 1);
}

TEST(OneTokenNet, HasThemAtAnySizeAndDepth) {
  for (const int64_t width : {4, 52, 200}) {
    NetworkSettings settings = of_width(width, 3 * width + 1);
    settings.layers = 3;
    settings.outputs = 5;
    settings.init_sigma = settings.output_sigma = 0.2;
    expect_same_values(QNetwork(settings, 2), 2);
  }
}

TEST(OneTokenNet, FollowsWhatIsTrainedAndCopied) {
  PublishedSettings settings;
  settings.network = of_width(64, 128);
  settings.learning_rate = 0.01;
  QTrainee trainee(settings, 3);
  const auto observation = random_observations(1, 4);
  const auto before = trainee.network().q_values(observation);
  TrainingBatch batch{random_observations(16, 5), std::vector<int64_t>(16, 7),
                      std::vector<float>(16, 3.0F)};
  for (int i = 0; i < 3; ++i) trainee.fit(batch);
  EXPECT_NE(trainee.network().q_values(observation), before);
  expect_same_values(trainee.network(), 6);

  QNetwork other(settings.network, 8);
  ASSERT_TRUE(other.set_weights(trainee.network().weights()));
  const QNetwork copy = other.clone();
  EXPECT_EQ(copy.q_values(observation), trainee.network().q_values(observation));
  expect_same_values(copy, 9);
}

TEST(OneTokenNet, SeveralTokensGoThroughLibtorch) {
  NetworkSettings settings = of_width(64, 128);
  settings.tokens = InputTokens::kPerFeature;
  const QNetwork network(settings, 10);
  const auto observation = random_observations(1, 11);
  EXPECT_EQ(network.q_values(observation), network.q_values_by_torch(observation));
}

TEST(OneTokenNet, FloorAddsUpTheWeights) {
  const QNetwork network(of_width(52, 100), 12);
  double expected = 0;
  for (const float weight : network.weights()) expected += weight;
  EXPECT_NEAR(network.sum_weights(), expected, 1e-2);
  EXPECT_TRUE(std::isfinite(network.sum_weights_read()));
}

}  // namespace
}  // namespace tierpilot

#include "policies/gang/learned/dense_net.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tierpilot::gang {
namespace {

// Half the square of each output, weighted.
double loss(const DenseNet& net, const std::vector<float>& input) {
  DenseNet::Pass pass;
  net.forward(input, pass);
  double sum = 0;
  for (size_t i = 0; i < pass.output().size(); ++i)
    sum += 0.5 * static_cast<double>(i + 1) * pass.output()[i] * pass.output()[i];
  return sum;
}

TEST(DenseNet, GradientsAreThoseOfFiniteDifferences) {
  SeededRandom random(3);
  DenseNet net({5, 7, 6, 3}, random);
  std::vector<float> input;
  for (int i = 0; i < 5; ++i) input.push_back(static_cast<float>(2 * random.unit() - 1));
  DenseNet::Pass pass;
  net.forward(input, pass);
  std::vector<float> by_output;
  for (size_t i = 0; i < 3; ++i) by_output.push_back(static_cast<float>(i + 1) * pass.output()[i]);
  net.backward(pass, by_output);
  constexpr float kStep = 1e-3F;
  int alive = 0;
  for (size_t i = 0; i < net.parameters().size(); ++i) {
    float& parameter = net.parameters()[i];
    const float was = parameter;
    parameter = was + kStep;
    const double above = loss(net, input);
    parameter = was - kStep;
    const double below = loss(net, input);
    parameter = was;
    const double slope = (above - below) / (2 * kStep);
    EXPECT_NEAR(net.gradients()[i], slope, 0.02 * std::max(1.0, std::abs(slope))) << i;
    alive += std::abs(slope) > 1e-3 ? 1 : 0;
  }
  EXPECT_GT(alive, 20);
}

TEST(DenseNet, LearnsWhatNoLineSeparates) {
  SeededRandom random(5);
  DenseNet net({2, 16, 1}, random);
  DenseNet::Pass pass;
  const float examples[4][3] = {{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}};
  for (int round = 0; round < 2000; ++round) {
    for (const auto& example : examples) {
      net.forward({example, 2}, pass);
      const float error = pass.output()[0] - example[2];
      net.backward(pass, {&error, 1});
    }
    net.step(0.01F, 4);
  }
  for (const auto& example : examples) {
    net.forward({example, 2}, pass);
    EXPECT_NEAR(pass.output()[0], example[2], 0.1);
  }
}

TEST(Softmax, SumsToOneAndLeavesNothingToTheExcluded) {
  std::vector<float> logits{1000, 1001, -INFINITY, 999};
  softmax(logits);
  EXPECT_NEAR(logits[0] + logits[1] + logits[3], 1, 1e-5);
  EXPECT_EQ(logits[2], 0);
  EXPECT_NEAR(logits[1] / logits[0], std::exp(1.0), 1e-3);
}

}  // namespace
}  // namespace tierpilot::gang

// The nets: the same for equal seeds, learnable, and the parts of a batch add up to it.
#include "tools/trainer/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "swap/libtorch/tierpilot_swap_torch.h"

namespace tierpilot::trainer {
namespace {

std::vector<float> gradient_of(Model& model, uint64_t step, const Place& place) {
  std::vector<float> gradient(model.weights().size());
  model.add_up(step, place, gradient);
  return gradient;
}

class EachModel : public testing::TestWithParam<ModelKind> {
 protected:
  Problem problem(uint64_t seed = 1) const {
    return {.model = GetParam(), .seed = seed, .samples = 300, .batch = 31};
  }
};

TEST_P(EachModel, FollowsFromItsSeed) {
  Model one(problem()), same(problem()), other(problem(2));
  const std::vector<float> weights(one.weights().begin(), one.weights().end());
  EXPECT_TRUE(std::equal(weights.begin(), weights.end(), same.weights().begin()));
  EXPECT_FALSE(std::equal(weights.begin(), weights.end(), other.weights().begin()));
  EXPECT_EQ(one.loss(), same.loss());
  EXPECT_EQ(gradient_of(one, 5, {}), gradient_of(same, 5, {}));
  EXPECT_NE(gradient_of(one, 5, {}), gradient_of(one, 6, {})) << "another batch";
}

TEST_P(EachModel, GradientsOfRanksAddUpToTheBatchs) {
  Model model(problem());
  const auto whole = gradient_of(model, 3, {});
  // More ranks than samples in the batch: some have nothing to do.
  for (const uint32_t world : {2u, 3u, 40u}) {
    std::vector<double> sum(whole.size());
    for (uint32_t rank = 0; rank < world; ++rank) {
      const auto part = gradient_of(model, 3, {.rank = rank, .world = world});
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], whole[i], 1e-5) << world;
  }
}

TEST_P(EachModel, WeightsThatAreWrittenCount) {
  Model model(problem());
  const double before = model.loss();
  const std::vector<float> first(model.weights().begin(), model.weights().end());
  std::ranges::fill(model.weights(), 0.0f);
  EXPECT_NE(model.loss(), before);
  std::ranges::copy(first, model.weights().begin());
  EXPECT_EQ(model.loss(), before);
}

TEST_P(EachModel, AStepAgainstTheGradientLowersTheLoss) {
  Model model(problem());
  const double before = model.loss();
  for (uint64_t step = 0; step < 60; ++step) {
    const auto gradient = gradient_of(model, step, {});
    for (size_t i = 0; i < gradient.size(); ++i) model.weights()[i] -= 0.1f * gradient[i];
  }
  EXPECT_LT(model.loss(), 0.8 * before);
}

TEST(DeepModel, ItsBlocksComputedAgainGiveTheSameGradients) {
  const Problem problem{.model = ModelKind::kResidual, .samples = 300, .batch = 128};
  Model plain(problem), again(problem);
  const swap::Scope scope({.budget = "64GiB", .policy = "checkpoint", .tiers = "memory=16MiB"});
  for (uint64_t step = 0; step < 3; ++step)
    EXPECT_EQ(gradient_of(again, step, {}), gradient_of(plain, step, {}));
  EXPECT_EQ(parse_json<nlohmann::json>(scope.statistics())["recomputed_segments"],
            (2 * 3 - 1) * 12);
}

INSTANTIATE_TEST_SUITE_P(All, EachModel,
                         testing::Values(ModelKind::kMlp, ModelKind::kConv, ModelKind::kLogistic,
                                         ModelKind::kResidual),
                         [](const auto& info) {
                           return kModelNames[static_cast<size_t>(info.param)];
                         });

}  // namespace
}  // namespace tierpilot::trainer

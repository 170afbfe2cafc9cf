// Scopes in trainings with libtorch: values never change, whatever leaves memory.
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/long_form.h"
#include "tests/unit/swap_libtorch/scene.h"

namespace tierpilot::swap {
namespace {

class ValuesTest : public testing::Test {
 protected:
  void SetUp() override { torch::set_num_threads(1); }
};

TEST_F(ValuesTest, GradientsAreThoseWithoutToTheLastBit) {
  const auto plain = gradients_of(std::nullopt);
  for (const auto* policy : {"swap-all", "swap", "capuchin", "q-published", "none"})
    for (const auto* budget : {kRoom.c_str(), "1MiB"}) {
      const bool moves = policy == std::string("swap-all") || policy == std::string("swap");
      if (budget == kRoom && !moves && !test::long_form()) continue;
      const ScopeSettings settings{.budget = budget, .policy = policy, .tiers = "memory=256MiB"};
      EXPECT_TRUE(same(gradients_of(settings), plain)) << policy << ' ' << budget;
      const auto said = statistics_of(settings);
      EXPECT_GE(said["steps"], 7) << policy;
      // Over its budget a pass waits until enough has left; with room it is as fast as copies are.
      const auto least = budget == kRoom ? 0 : 20;
      if (policy == std::string("swap-all") || (policy == std::string("swap") && least > 0)) {
        EXPECT_GT(said["copies_out"], least) << said;
        EXPECT_GT(said["copies_in"], least) << said;
      }
      EXPECT_EQ(held_bytes(settings), 0) << policy;
    }
}

// A random ReLU its slopes.
TEST_F(ValuesTest, WhatAnOperatorFillsAfterItHasSavedIt) {
  const auto gradient = [](const std::optional<ScopeSettings>& settings) {
    torch::manual_seed(3);
    const auto x = torch::randn({1024, 256}, torch::requires_grad());
    std::optional<Scope> scope;
    if (settings) scope.emplace(*settings);
    const auto y = torch::rrelu(torch::rrelu(x * 2, .1, .3, true).exp(), .1, .3, true);
    return torch::autograd::grad({y.square().mean()}, {x})[0];
  };
  const auto plain = gradient(std::nullopt);
  for (const auto* policy : {"swap-all", "swap", "checkpoint"})
    for (const auto* budget : {kRoom.c_str(), "1MiB"})
      for (int step = 0; step < 3; ++step) {
        const ScopeSettings settings{.budget = budget, .policy = policy, .tiers = "memory=243MiB"};
        EXPECT_TRUE(gradient(settings).equal(plain)) << policy << ' ' << budget << ' ' << step;
      }
}

TEST_F(ValuesTest, ATierThatIsFullKeepsTheRestHere) {
  const auto settings = everything_leaves("memory=1MiB");
  EXPECT_TRUE(same(gradients_of(settings), gradients_of(std::nullopt)));
  EXPECT_GT(statistics_of(settings)["refused"], 0);
  EXPECT_GT(statistics_of(settings)["copies_out"], 0);
}

TEST_F(ValuesTest, OneScopeForAllOfATraining) {
  const auto plain = gradients_of(std::nullopt);
  const auto settings = everything_leaves("memory=255MiB");
  const Scope scope(settings);
  EXPECT_TRUE(same(gradients_of(std::nullopt), plain));
  EXPECT_GT(statistics_of(settings)["copies_in"], 0);
}

TEST_F(ValuesTest, OnlyWhatIsSavedWithinLeaves) {
  const auto settings = everything_leaves("memory=254MiB");
  const auto x = torch::randn({256, 512}, torch::requires_grad());
  const auto before = x.exp();
  { const Scope scope(settings); }
  const auto behind = x.tanh();
  (before * behind).sum().backward();
  EXPECT_EQ(statistics_of(settings)["saves"], 0);
  std::thread elsewhere;
  {
    const Scope scope(settings);
    elsewhere = std::thread([&] { x.exp().sum().backward(); });
    elsewhere.join();
  }
  EXPECT_EQ(statistics_of(settings)["saves"], 0) << "of a thread that has no scope";
}

TEST_F(ValuesTest, TheInnermostScopeCounts) {
  const auto outer = everything_leaves("memory=253MiB"), inner = everything_leaves("memory=252MiB");
  const auto x = torch::randn({256, 512}, torch::requires_grad());
  const Scope around(outer);
  torch::Tensor y;
  {
    const Scope within(inner);
    y = x.exp();
  }
  EXPECT_EQ(statistics_of(inner)["saves"], 1);
  y = y.tanh();
  EXPECT_EQ(statistics_of(outer)["saves"], 1);
  y.sum().backward();
  EXPECT_TRUE(x.grad().defined());
}

TEST_F(ValuesTest, AStorageWithSeveralTensorsMovesOnce) {
  const auto settings = everything_leaves("memory=251MiB");
  const auto base = torch::randn({64, 1024}, torch::requires_grad());
  {
    const Scope scope(settings);
    const auto made = base * 2;
    const auto halves = made.chunk(2);
    (halves[0].exp() * made.narrow(0, 0, 32) * halves[1].exp() * made.view({-1}).narrow(0, 0, 1024))
        .sum()
        .backward();
  }
  // `made`, two exponentials, two products.
  EXPECT_LE(statistics_of(settings)["saves"], 5);
  EXPECT_GT(statistics_of(settings)["saves"], 2);
}

TEST_F(ValuesTest, WhatLooksLikeItsStorageAndIsNotStays) {
  const auto settings = everything_leaves("memory=250MiB");
  const auto gradient = [&](bool scoped) {
    torch::manual_seed(4);
    const auto complex = torch::dtype(torch::kComplexFloat).requires_grad(true);
    const auto a = torch::randn({256, 256}, complex), b = torch::randn({256, 256}, complex);
    torch::Tensor y;
    {
      std::optional<Scope> scope;
      if (scoped) scope.emplace(settings);
      const auto conjugate = (a * 2).conj();
      EXPECT_TRUE(conjugate.is_conj() && torch::imag(conjugate).is_neg());
      y = (conjugate * (b * 1)).abs().sum() + (torch::imag(conjugate) * torch::real(b * 3)).sum();
    }
    if (scoped) let_leave(settings);
    y.backward();
    return Tensors{a.grad(), b.grad()};
  };
  EXPECT_TRUE(same({gradient(true)}, {gradient(false)}));
  EXPECT_GT(statistics_of(settings)["copies_in"], 0);
}

TEST_F(ValuesTest, AGraphThatIsKeptCanBeGoneThroughAgain) {
  const auto settings = everything_leaves("memory=249MiB");
  const auto x = torch::randn({128, 512}, torch::requires_grad());
  const auto made = [&x] { return (x.exp() * x.tanh()).sum(); };
  {
    torch::Tensor y;
    {
      const Scope scope(settings);
      y = made();
    }
    let_leave(settings);
    const auto first = torch::autograd::grad({y}, {x}, {}, true)[0];
    const auto second = torch::autograd::grad({y}, {x})[0];
    EXPECT_TRUE(first.equal(second));
    EXPECT_TRUE(first.equal(torch::autograd::grad({made()}, {x})[0]));
  }
  EXPECT_GT(statistics_of(settings)["copies_in"], 0);
  EXPECT_EQ(held_bytes(settings), 0);
}

TEST_F(ValuesTest, GradientsOfGradients) {
  const auto settings = everything_leaves("memory=248MiB");
  const auto x = torch::randn({128, 512}, torch::requires_grad());
  const auto twice = [&](bool scoped) {
    const auto y = (x.exp() * x.tanh()).sum();
    if (scoped) let_leave(settings);
    const auto g = torch::autograd::grad({y}, {x}, {}, true, true)[0];
    return torch::autograd::grad({(g * g).sum()}, {x})[0];
  };
  torch::Tensor ours;
  {
    const Scope scope(settings);
    ours = twice(true);
  }
  EXPECT_TRUE(ours.equal(twice(false)));
  EXPECT_GT(statistics_of(settings)["copies_in"], 0);
}

}  // namespace
}  // namespace tierpilot::swap

// What a program does meanwhile: changes in place, exceptions, threads, forks, other engines, and
// settings that are wrong.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/csrc/autograd/engine.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/unit/swap_libtorch/scene.h"

// Too large an allocation fails as it does elsewhere.
#ifdef __SANITIZE_ADDRESS__
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
#endif
#ifdef __SANITIZE_THREAD__
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}
// Debian's libtorch is not built for this sanitizer, which so sees nothing of its reference counts.
extern "C" const char* __tsan_default_suppressions() {
  return "race:libtorch_cpu.so\nrace:libc10.so\n";
}
#endif

namespace tierpilot::swap {
namespace {

class ChangesTest : public testing::Test {
 protected:
  void SetUp() override { torch::set_num_threads(1); }
};

constexpr int64_t kTooMuch = int64_t{1} << 46;

TEST_F(ChangesTest, AStepThatHadNoMemoryRunsAgainWithItsRandomNumbers) {
  const ScopeSettings settings{.budget = kRoom, .policy = "swap", .tiers = "memory=96MiB"};
  Scope scope(settings);
  std::vector<torch::Tensor> drawn;
  const auto loss = scope.step([&] {
    drawn.push_back(torch::randn({128}));
    const auto x = torch::randn({256, 512}, torch::requires_grad());
    auto sum = (x.exp() * x.tanh()).sum();
    if (drawn.size() == 1) (void)torch::empty({kTooMuch});
    sum.backward();
    return sum;
  });
  ASSERT_EQ(drawn.size(), 2U);
  EXPECT_TRUE(drawn[0].equal(drawn[1]));
  EXPECT_TRUE(loss.defined());
  EXPECT_EQ(statistics_of(settings)["failures"], 1);
}

TEST_F(ChangesTest, AStepIsNotRepeatedForOtherErrorsNorForEver) {
  Scope scope({.budget = kRoom, .tiers = "memory=80MiB"});
  int runs = 0;
  EXPECT_EQ(error_of([&] {
              scope.step([&]() -> int { throw std::runtime_error(std::to_string(++runs)); });
            }),
            "1");
  runs = 0;
  const auto error = error_of([&] {
    scope.step(
        [&] {
          ++runs;
          return torch::empty({kTooMuch});
        },
        3);
  });
  EXPECT_NE(error.find("allocate memory"), std::string::npos) << error;
  EXPECT_EQ(runs, 3);
}

// The gradient of x * exp(x), whose exponential is changed between the passes.
torch::Tensor gradient_after_change(const ScopeSettings& settings, const torch::Tensor& x,
                                    bool leaves_before) {
  torch::Tensor y, z;
  {
    const Scope scope(settings);
    y = x.exp();
    z = ((x * 1) * y).sum();
  }
  if (leaves_before) let_leave(settings);
  y.add_(1);
  return torch::autograd::grad({z}, {x})[0];
}

TEST_F(ChangesTest, WhatIsChangedInPlaceIsRefusedAsAutogradDoesWhereverItIs) {
  const auto x = torch::randn({256, 512}, torch::requires_grad());
  const auto stays = ScopeSettings{.budget = kRoom, .policy = "none", .tiers = "memory=128MiB"};
  for (const bool leaves : {false, true}) {
    const auto error = error_of([&] {
      gradient_after_change(leaves ? everything_leaves("memory=128MiB") : stays, x, leaves);
    });
    EXPECT_NE(error.find("modified by an inplace operation"), std::string::npos) << error;
  }
}

// One may be in the middle of changing it while another one lets go of it.
TEST_F(ChangesTest, WhatIsChangedAfterAnotherThreadHasLetItGoIsRefused) {
  const auto settings = everything_leaves("memory=119MiB");
  const auto x = torch::randn({256, 512}, torch::requires_grad());
  torch::Tensor y, z;
  {
    const Scope scope(settings);
    y = x.exp();
    z = y.sum();
  }
  std::thread([&] { let_leave(settings); }).join();
  EXPECT_TRUE(torch::autograd::grad({z}, {x}, {}, true)[0].equal(x.exp()));
  y.add_(1);
  const auto error = error_of([&] { torch::autograd::grad({z}, {x}); });
  EXPECT_NE(error.find("modified by an inplace operation"), std::string::npos) << error;
}

TEST_F(ChangesTest, SmallTensorsAreCheckedAsAutogradChecksThem) {
  const Scope scope(everything_leaves("memory=127MiB"));
  const auto x = torch::randn({8}, torch::requires_grad());
  auto y = x.exp();
  const auto z = y.sum();
  y.add_(1);
  EXPECT_NE(error_of([&] { z.backward(); }).find("modified by an inplace operation"),
            std::string::npos);
}

TEST_F(ChangesTest, AnExceptionInTheMiddleOfAForwardPassLeavesNothingBehind) {
  const auto settings = everything_leaves("memory=126MiB");
  const auto plain = gradients_of(std::nullopt, {24, 24});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(error_of([&] {
                const Scope scope(settings);
                auto net = new_net();
                const auto middle = net->forward(torch::randn({24, 3, 16, 16}));
                throw std::runtime_error("in the middle");
              }),
              "in the middle");
  }
  const auto x = torch::randn({256, 512}, torch::requires_grad());
  const auto before = statistics_of(settings)["saves"];
  x.exp().sum().backward();
  EXPECT_EQ(statistics_of(settings)["saves"], before) << "the scope has ended";
  EXPECT_TRUE(same(gradients_of(settings, {24, 24}), plain));
  EXPECT_EQ(held_bytes(settings), 0);
}

TEST_F(ChangesTest, BackwardPassesInSeveralThreadsAtOnce) {
  const auto settings = everything_leaves("memory=125MiB");
  constexpr size_t kThreads = 6;
  Tensors inputs, results(kThreads);
  for (size_t i = 0; i < kThreads; ++i)
    inputs.push_back(torch::randn({256, 512}, torch::requires_grad()));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        torch::Tensor y;
        {
          const Scope scope(settings);
          y = inputs[i].exp().tanh().sum();
        }
        results[i] = torch::autograd::grad({y}, {inputs[i]})[0];
      }
    });
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i)
    EXPECT_TRUE(
        results[i].equal(torch::autograd::grad({inputs[i].exp().tanh().sum()}, {inputs[i]})[0]));
  EXPECT_GT(statistics_of(settings)["copies_in"], 0);

  torch::Tensor y;
  {
    const Scope scope(settings);
    y = inputs[0].exp().tanh().sum();
  }
  std::thread([&] { y.backward(); }).join();
  EXPECT_TRUE(inputs[0].grad().equal(results[0]));
}

TEST_F(ChangesTest, AForkedChildTrainsWithoutAndCannotHaveWhatIsAway) {
  const auto settings = everything_leaves("memory=124MiB");
  const auto x = torch::randn({256, 512}, torch::requires_grad());
  const Scope scope(settings);
  const auto y = x.exp().tanh().sum();
  const auto child = fork();
  if (child == 0) {
    const auto z = torch::randn({256, 512}, torch::requires_grad());
    z.exp().sum().backward();
    const bool right = z.grad().equal(z.exp()) &&
                       error_of([&] { y.backward(); }).find("forked") != std::string::npos;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  y.backward();
  EXPECT_TRUE(x.grad().equal(torch::autograd::grad({x.exp().tanh().sum()}, {x})[0]));
}

TEST_F(ChangesTest, WrongSettingsSayWhatIsWrongAndChangeNothing) {
  const std::vector<std::pair<ScopeSettings, std::string>> wrong{
      {{.budget = "fast"}, "the budget 'fast' is no size"},
      {{.budget = ""}, "Scope({.budget = \"4GiB\"}), or set TIERPILOT_SWAP_BUDGET"},
      {{.budget = "0"}, "above 0"},
      {{.budget = "4"}, "the budget '4' holds no tensor: say a unit, as in '4GiB'"},
      {{.budget = kRoom, .policy = "magic"}, "policy 'magic' is not known; there are swap"},
      {{.budget = kRoom, .policy = "vdnn"}, "policy 'vdnn' needs to know the model's layers"},
      {{.budget = kRoom, .tiers = "dir:/nonexistent=1GiB"}, "No such file"},
      {{.budget = kRoom, .tiers = "memory"}, "NAME=SIZE"},
  };
  for (const auto& [settings, words] : wrong) {
    const auto error = error_of([&] { const Scope scope(settings); });
    EXPECT_NE(error.find(words), std::string::npos) << error;
  }
  const auto x = torch::randn({256, 512}, torch::requires_grad());
  x.exp().sum().backward();
  EXPECT_TRUE(x.grad().equal(x.exp()));
}

TEST_F(ChangesTest, WithoutABudgetAndTiersTheyAreThoseOfTheTask) {
  setenv("TIERPILOT_SWAP_BUDGET", "3GiB", 1);
  setenv("TIERPILOT_SWAP_TIERS", "memory=48MiB", 1);
  const Scope given{{}};
  unsetenv("TIERPILOT_SWAP_BUDGET");
  unsetenv("TIERPILOT_SWAP_TIERS");
  EXPECT_EQ(nlohmann::json::parse(given.statistics())["budget_bytes"], 3LL << 30);
  const auto tiers = nlohmann::json::parse(given.tiers());
  ASSERT_EQ(tiers.size(), 1u);
  EXPECT_EQ(tiers[0]["capacity_bytes"], 48 << 20);
}

// In a process of its own, which runs all of this test until it has ended.
TEST_F(ChangesTest, TheNextProcessStartsWithWhatWasLearned) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr const char* kPlans = "TIERPILOT_TEST_PLANS";
  const auto own = testing::TempDir() + "plans-of-changes";  // written again when this process ends
  if (!std::getenv(kPlans)) std::filesystem::remove(own);
  setenv(kPlans, own.c_str(), 0);
  const ScopeSettings settings{
      .budget = kRoom, .tiers = "memory=64MiB", .plan_file = std::getenv(kPlans)};
  const auto train = [&] {
    gradients_of(settings, {24, 24, 24});
    std::exit(statistics_of(settings)["restored_steps"] == 0 ? 0 : 1);
  };
  EXPECT_EXIT(train(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(statistics_of(settings)["restored_steps"], 1);
}

// What Python's PyTorch does.
class OtherEngine : public torch::autograd::Engine {};
torch::autograd::Engine& other_engine() {
  static auto* const engine = new OtherEngine;
  return *engine;
}

TEST_F(ChangesTest, AnEngineOfSomebodyElseIsNotReplaced) {
  using torch::autograd::Engine;
  const auto settings = everything_leaves("memory=123MiB");
  torch::autograd::set_default_engine_stub(&other_engine);
  EXPECT_NE(error_of([&] { const Scope scope(settings); }).find("another engine of autograd"),
            std::string::npos);
  EXPECT_EQ(&Engine::get_default_engine(), &other_engine());
  torch::autograd::set_default_engine_stub(&Engine::get_base_engine);
  const Scope scope(settings);
  const auto x = torch::randn({256, 512}, torch::requires_grad());
  x.exp().sum().backward();
  EXPECT_EQ(statistics_of(settings)["saves"], 1);
}

}  // namespace
}  // namespace tierpilot::swap

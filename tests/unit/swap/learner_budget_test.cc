// A step that is known, when the device turns out to have less memory, or it goes back otherwise.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/swap/learning/choice.h"
#include "policies/swap/learning/step_learner.h"
#include "tests/unit/swap/observed_chain.h"

namespace tierpilot::swap {
namespace {

// A chain of other shapes than the first.
ObservedStep other_chain() {
  auto step = chain_of(20);
  for (auto& save : step.saves) save.place += 1000;
  return step;
}

class KnownSteps : public ::testing::Test {
 protected:
  // What would leave if it ran now.
  std::vector<char> away_of(const ObservedStep& step) {
    learner_.begin();
    std::vector<char> away;
    for (const auto& save : step.saves) away.push_back(learner_.save(save).away);
    return away;
  }
  std::vector<char> run(const ObservedStep& step, int64_t peak, int64_t step_ns = 50'000'000) {
    auto away = away_of(step);
    learner_.end({.step = step, .step_ns = step_ns, .peak_bytes = peak}, 0);
    return away;
  }
  // In the middle of the step memory runs out; then it is run again.
  void run_out(const ObservedStep& step, int64_t budget) {
    learner_.begin();
    for (const auto& save : step.saves) learner_.save(save);
    EXPECT_FALSE(learner_.failed());
    learner_.set_budget(budget);
    learner_.end({.step = step, .step_ns = 50'000'000, .peak_bytes = budget}, 0);
    run(step, budget);
  }
  StepLearner learner_{{.limits = limits(24 * kMiB)}};
};

size_t stay(const std::vector<char>& away) {
  return static_cast<size_t>(std::count(away.begin(), away.end(), 0));
}

TEST_F(KnownSteps, AllKeepToABudgetThatWasLoweredForOne) {
  const auto one = chain_of(20), other = other_chain();
  for (int i = 0; i < 2; ++i) {
    run(one, 23 * kMiB);
    run(other, 23 * kMiB);
  }
  // 10 MiB of each step are others'.
  constexpr int64_t kLess = 16 * kMiB;
  ASSERT_GT(stay(away_of(other)), 6U);
  run_out(one, kLess);
  EXPECT_LE(stay(away_of(other)), 6U) << "before it runs out, too";
  EXPECT_LE(stay(away_of(one)), 6U);
}

// What was best for the other one is nothing to go back to, nor to keep for the next run.
TEST_F(KnownSteps, AnotherBackwardPassBeginsAnew) {
  const auto step = chain_of(20);
  std::vector<char> before;
  for (int i = 0; i < 8; ++i) before = run(step, 20 * kMiB, 40'000'000);
  auto turned = step;
  std::reverse(turned.uses.begin(), turned.uses.end());
  for (int i = 0; i < 2; ++i) run(turned, 20 * kMiB, 90'000'000);
  const auto planned = run(turned, 20 * kMiB, 90'000'000);
  ASSERT_NE(planned, before);
  for (int i = 0; i < 20; ++i) run(turned, 20 * kMiB, 90'000'000);
  const auto kept = learner_.kept();
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_NE(kept[0].away, before);
}

}  // namespace
}  // namespace tierpilot::swap

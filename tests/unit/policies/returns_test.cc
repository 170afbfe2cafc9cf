#include "policies/placement/dqn/returns.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

using Step = Returns::Step;

std::shared_ptr<TokenSet> sight(double scale_s) {
  auto tokens = std::make_shared<TokenSet>();
  tokens->scale_s = scale_s;
  return tokens;
}

// Decisions in a row, each of which cost as much as its number from 1 on, in units of one second.
std::vector<Step> row(size_t count) {
  std::vector<Step> steps;
  auto seen = sight(1);
  for (size_t i = 0; i < count; ++i) {
    auto next = sight(1);
    steps.push_back({seen, next, 0, -static_cast<double>(i + 1)});
    seen = next;
  }
  return steps;
}

Returns knowing(const std::vector<Step>& steps, size_t n, double gamma, size_t capacity = 100) {
  Returns returns(n, gamma, capacity);
  for (const Step& step : steps) returns.add(step);
  return returns;
}

TEST(Returns, OneStepIsTheCostAndTheValueOfWhatComesNext) {
  const auto steps = row(3);
  const auto sum = knowing(steps, 1, 0.5).from(steps[0]);
  EXPECT_EQ(sum.measured, -1);
  EXPECT_EQ(sum.weight, 0.5);
  EXPECT_EQ(sum.rest, steps[1].seen);
}

TEST(Returns, ManyStepsSumWhatWasMeasured) {
  const auto steps = row(5);
  const auto sum = knowing(steps, 3, 0.5).from(steps[0]);
  EXPECT_DOUBLE_EQ(sum.measured, -(1 + 0.5 * 2 + 0.25 * 3));
  EXPECT_DOUBLE_EQ(sum.weight, 0.125);
  EXPECT_EQ(sum.rest, steps[3].seen);
}

TEST(Returns, WithoutGammaOnlyTheDecisionItselfCounts) {
  const auto steps = row(5);
  const auto sum = knowing(steps, 3, 0).from(steps[0]);
  EXPECT_EQ(sum.measured, -1);
  EXPECT_EQ(sum.rest, nullptr);
}

TEST(Returns, CostsAreInUnitsOfTheFirstDecision) {
  auto first = sight(2);
  auto second = sight(6);
  auto third = sight(1);
  const std::vector<Step> steps{{first, second, 0, -1}, {second, third, 0, -1}};
  const auto sum = knowing(steps, 2, 0.5).from(steps[0]);
  EXPECT_DOUBLE_EQ(sum.measured * 2, -(2 + 0.5 * 6)) << "seconds";
  EXPECT_DOUBLE_EQ(sum.weight * 2, 0.25 * 1);
}

TEST(Returns, EndEarlyWhereACostIsNotKnown) {
  auto steps = row(5);
  auto known = steps;
  known.erase(known.begin() + 2);
  const auto sum = knowing(known, 4, 0.5).from(steps[0]);
  EXPECT_DOUBLE_EQ(sum.measured, -(1 + 0.5 * 2));
  EXPECT_DOUBLE_EQ(sum.weight, 0.25);
  EXPECT_EQ(sum.rest, steps[2].seen);
}

TEST(Returns, TheLastDecisionHasNothingAfterIt) {
  auto steps = row(2);
  steps[1].next = nullptr;
  const auto sum = knowing(steps, 4, 0.5).from(steps[0]);
  EXPECT_DOUBLE_EQ(sum.measured, -(1 + 0.5 * 2));
  EXPECT_EQ(sum.rest, nullptr);
}

TEST(Returns, OrderOfCompletionDoesNotMatter) {
  const auto steps = row(4);
  const auto sum = knowing({steps[2], steps[0], steps[1]}, 3, 0.5).from(steps[0]);
  EXPECT_DOUBLE_EQ(sum.measured, -(1 + 0.5 * 2 + 0.25 * 3));
}

TEST(Returns, TheOldestGivesWay) {
  const auto steps = row(5);
  const Returns returns = knowing(steps, 5, 0.5, 2);
  EXPECT_EQ(returns.from(steps[0]).rest, steps[1].seen) << "what came after it is forgotten";
  EXPECT_EQ(returns.from(steps[2]).rest, steps[4].next);
}

}  // namespace
}  // namespace tierpilot

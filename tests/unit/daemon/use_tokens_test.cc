#include "daemon/agent/tasks/use_tokens.h"

#include <gtest/gtest.h>

namespace tierpilot::agent {
namespace {

constexpr int64_t kPeriodNs = 100'000'000;

TEST(UseTokens, AreSpentAndComeBackWithThePeriod) {
  UseTokens tokens;
  EXPECT_FALSE(tokens.may_run());
  tokens.refill(kPeriodNs * 25 / 100);
  EXPECT_TRUE(tokens.may_run());
  tokens.spend(kPeriodNs / 4);
  EXPECT_FALSE(tokens.may_run());
  tokens.refill(kPeriodNs * 25 / 100);
  EXPECT_TRUE(tokens.may_run());
}

TEST(UseTokens, WhatIsNotUsedDoesNotAddUp) {
  UseTokens tokens;
  for (int period = 0; period < 100; ++period) tokens.refill(kPeriodNs * 50 / 100);
  tokens.spend(kPeriodNs / 2);
  EXPECT_FALSE(tokens.may_run());
}

// A task of eight threads that is looked at ten times a period.
TEST(UseTokens, OverManyPeriodsTheShareIsHeld) {
  UseTokens tokens;
  int64_t used = 0;
  for (int look = 0; look < 10'000; ++look) {
    if (look % 10 == 0) tokens.refill(kPeriodNs * 30 / 100);
    if (!tokens.may_run()) continue;
    tokens.spend(8 * kPeriodNs / 10);
    used += 8 * kPeriodNs / 10;
  }
  const double share = static_cast<double>(used) / (1000.0 * kPeriodNs);
  EXPECT_NEAR(share, 0.3, 0.01);
}

}  // namespace
}  // namespace tierpilot::agent

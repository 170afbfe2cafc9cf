#include "policies/sharing/interference/pair_effects.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tierpilot::sharing {
namespace {

constexpr EffectSpreads kSpreads{0.15, 0.1, 0.1, 0.1};
constexpr double kSmall = 0.001;  // variance of a measurement

TEST(PairEffects, NothingIsKnownBeforeAnythingIsMeasured) {
  PairEffects effects(kSpreads);
  const auto effect = effects.of("a", "b");
  EXPECT_EQ(effect.ln, 0);
  EXPECT_NEAR(effect.variance, 0.15 * 0.15 + 3 * 0.01, 1e-9);
  EXPECT_EQ(effect.of_pair + effect.of_names, 0U);
}

// The pair itself most, then those that one of the two is in, and strangers least.
TEST(PairEffects, AMeasurementTellsOfOthersTheLessTheyHaveInCommon) {
  PairEffects effects(kSpreads);
  for (int i = 0; i < 5; ++i) effects.measured("a", "b", -0.4, kSmall);
  const auto pair = effects.of("a", "b"), own = effects.of("a", "c"), other = effects.of("c", "d");
  EXPECT_NEAR(pair.ln, -0.4, 0.02);
  EXPECT_LT(pair.ln, own.ln);
  EXPECT_LT(own.ln, other.ln);
  EXPECT_LT(other.ln, -0.05) << "all may be like that here";
  EXPECT_LT(pair.variance, own.variance);
  EXPECT_LT(own.variance, other.variance);
  EXPECT_EQ(pair.of_pair, 5U);
  EXPECT_EQ(own.of_pair, 0U);
  EXPECT_EQ(own.of_names, 5U);
  EXPECT_EQ(other.of_names, 0U);
}

TEST(PairEffects, TheTwoPlacesAreNotTheSame) {
  PairEffects effects(kSpreads);
  for (int i = 0; i < 5; ++i) effects.measured("frail", "wild", -0.5, kSmall);
  EXPECT_LT(effects.of("frail", "x").ln, effects.of("x", "frail").ln);
  EXPECT_LT(effects.of("x", "wild").ln, effects.of("wild", "x").ln);
}

// Each loses by itself and by whom it is beside: pairs that never met are told by the others.
TEST(PairEffects, PairsThatNeverMetAreToldByTheirOwnEffects) {
  PairEffects effects(kSpreads);
  const auto truth = [](int victim, int other) { return -0.05 - 0.05 * victim - 0.03 * other; };
  const auto name = [](int job) { return fmt::format("job{}", job); };
  for (int round = 0; round < 5; ++round)
    for (int victim = 0; victim < 6; ++victim)
      for (int other = 0; other < 6; ++other)
        if ((victim + other) % 2 == 0)
          effects.measured(name(victim), name(other), truth(victim, other), kSmall);
  double error = 0, of_mean = 0;
  int count = 0;
  for (int victim = 0; victim < 6; ++victim)
    for (int other = 0; other < 6; ++other)
      if ((victim + other) % 2 == 1) {
        error += std::abs(effects.of(name(victim), name(other)).ln - truth(victim, other));
        of_mean += std::abs(-0.25 - truth(victim, other));
        ++count;
      }
  EXPECT_EQ(count, 18);
  EXPECT_LT(error, 0.4 * of_mean);
}

TEST(PairEffects, OneOddMeasurementCountsLittle) {
  PairEffects effects(kSpreads);
  for (int i = 0; i < 5; ++i) effects.measured("a", "b", -0.1, kSmall);
  effects.measured("a", "b", -1.6, kSmall);
  EXPECT_GT(effects.of("a", "b").ln, -0.2);
  EXPECT_LT(effects.of("a", "b").ln, -0.1);
}

TEST(PairEffects, WhatHasChangedForGoodIsFollowed) {
  PairEffects effects(kSpreads);
  for (int i = 0; i < 100; ++i) effects.measured("a", "b", -0.1, kSmall);
  for (int i = 0; i < 80; ++i) effects.measured("a", "b", -0.4, kSmall);
  EXPECT_NEAR(effects.of("a", "b").ln, -0.4, 0.05);
}

TEST(PairEffects, WhatIsNoNumberTellsNothing) {
  PairEffects effects(kSpreads);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  effects.measured("a", "b", nan, kSmall);
  effects.measured("a", "b", -std::numeric_limits<double>::infinity(), kSmall);
  effects.measured("a", "b", -0.1, 0);
  effects.measured("a", "b", -0.1, nan);
  EXPECT_EQ(effects.pairs(), 0U);
  EXPECT_EQ(effects.of("a", "b").ln, 0);
}

TEST(PairEffects, TheLeastRecentlyUsedPairsAreForgotten) {
  PairEffects effects(kSpreads, 3);
  for (const char* other : {"b", "c", "d"}) effects.measured("a", other, -0.3, kSmall);
  EXPECT_EQ(effects.of("a", "b").of_pair, 1U);  // asked for
  effects.measured("a", "e", -0.3, kSmall);
  EXPECT_EQ(effects.pairs(), 3U);
  EXPECT_EQ(effects.of("a", "b").of_pair, 1U);
  EXPECT_EQ(effects.of("a", "c").of_pair, 0U);
  for (int i = 0; i < 1000; ++i)
    effects.measured(fmt::format("v{}", i), fmt::format("n{}", i), -0.3, kSmall);
  EXPECT_EQ(effects.pairs(), 3U);
  EXPECT_LE(effects.names(), 6U);
}

// What is kept of each pair is enough to know all that was known.
TEST(PairEffects, WhatIsRestoredTellsWhatWasMeasured) {
  PairEffects before(kSpreads), after(kSpreads);
  const std::pair<const char*, const char*> pairs[] = {{"a", "b"}, {"b", "a"}, {"a", "c"}};
  for (int i = 0; i < 4; ++i)
    for (const auto& [victim, neighbour] : pairs)
      before.measured(victim, neighbour, victim[0] == 'a' ? -0.4 : -0.1, kSmall);
  for (const auto& [victim, neighbour] : pairs) {
    const auto kept = before.measured(victim, neighbour);
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->times, 4U);
    after.restore(victim, neighbour, *kept);
  }
  for (const char* victim : {"a", "b", "c", "d"})
    for (const char* neighbour : {"a", "b", "c", "d"}) {
      const auto was = before.of(victim, neighbour), is = after.of(victim, neighbour);
      EXPECT_NEAR(is.ln, was.ln, 0.005) << victim << neighbour;
      EXPECT_NEAR(is.variance, was.variance, 1e-6) << victim << neighbour;
      EXPECT_EQ(is.of_pair, was.of_pair);
      EXPECT_EQ(is.of_names, was.of_names);
    }
  EXPECT_FALSE(before.measured("c", "a"));
}

TEST(PairEffects, WhatIsRestoredTwiceCountsOnce) {
  PairEffects effects(kSpreads);
  effects.restore("a", "b", {-0.3, 500, 3});
  effects.restore("a", "b", {-0.3, 500, 3});
  EXPECT_EQ(effects.of("a", "b").of_pair, 3U);
  EXPECT_EQ(effects.of("a", "c").of_names, 3U);
}

TEST(PairEffects, WhatIsNoMeasurementIsNotRestored) {
  PairEffects effects(kSpreads);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& none : {PairMeasured{nan, 1, 1}, PairMeasured{-0.1, 0, 1},
                           PairMeasured{-0.1, nan, 1}, PairMeasured{-0.1, 1, 0}})
    effects.restore("a", "b", none);
  EXPECT_EQ(effects.pairs(), 0U);
}

}  // namespace
}  // namespace tierpilot::sharing

// What a library without recomputing lets leave.
#include "policies/swap/learning/choice.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "tests/unit/swap/observed_chain.h"

namespace tierpilot::swap {
namespace {

int64_t away_bytes(const ObservedStep& step, const Choice& choice) {
  int64_t sum = 0;
  for (size_t i = 0; i < step.saves.size(); ++i) sum += choice.away[i] ? step.saves[i].bytes : 0;
  return sum;
}

TEST(Choice, NothingLeavesWhereThereIsRoom) {
  const auto step = chain_of(20);
  const auto choice = choose("swap", step, limits(1000 * kMiB));
  EXPECT_EQ(away_bytes(step, choice), 0);
  ASSERT_TRUE(choice.foretold);
  EXPECT_DOUBLE_EQ(choice.foretold->overhead(), 1);
}

TEST(Choice, APlanIsNoWorseThanLettingEverythingLeaveAndKeepsTheBudget) {
  for (const int64_t room : {4, 8, 12, 16}) {
    const auto step = chain_of(20);
    const auto budget = (10 + room) * kMiB;
    const auto choice = choose("swap", step, limits(budget));
    ASSERT_TRUE(choice.foretold) << room;
    EXPECT_LE(choice.foretold->peak_bytes, budget);
    const auto everything = foretell(step, std::vector<char>(20, true), limits(budget));
    ASSERT_TRUE(everything.done);
    EXPECT_LE(choice.foretold->clock_ns, everything.clock_ns) << room;
    EXPECT_GE(away_bytes(step, choice), (20 - room) * kMiB) << room;
    EXPECT_EQ(choice.foretold->counts.recomputations, 0);
  }
}

TEST(Choice, WhatTheProgramHoldsAnywayStays) {
  auto step = chain_of(20);
  for (auto& save : step.saves) save.held = save.place <= 5;
  for (const auto* rule : {"swap", "swap-all", "vdnn", "capuchin"}) {
    const auto choice = choose(rule, step, limits(14 * kMiB));
    for (size_t i = 0; i < 5; ++i) EXPECT_FALSE(choice.away[i]) << rule;
  }
}

TEST(Choice, RivalsFollowTheirRules) {
  const auto step = chain_of(20);
  const auto vdnn = choose("vdnn", step, limits(20 * kMiB));
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(vdnn.away[i] != 0, i % 2 == 0);
  // The first saved are free for longest; what is over the budget at the peak is covered, no more.
  const auto capuchin = choose("capuchin", step, limits(24 * kMiB));
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(capuchin.away[i] != 0, i < 6) << i;
  EXPECT_EQ(away_bytes(step, choose("none", step, limits(1))), 0);
  EXPECT_EQ(away_bytes(step, choose("swap-all", step, limits(1))), 20 * kMiB);
}

TEST(Choice, WhatNeverFitsLetsEverythingLeave) {
  const auto step = chain_of(20);
  EXPECT_EQ(step.least_bytes(), 11 * kMiB);
  const auto choice = choose("swap", step, limits(5 * kMiB));
  EXPECT_FALSE(choice.foretold);
  EXPECT_EQ(away_bytes(step, choice), 20 * kMiB);
}

// Steps of any shape: the graph has each storage once, and replays without a limit take no longer.
TEST(StepGraph, OfAnyStepReplays) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SeededRandom random(seed);
    ObservedStep step;
    const auto saves = static_cast<uint32_t>(1 + random.below(40));
    for (uint32_t i = 0; i < saves; ++i)
      step.saves.push_back({.place = i,
                            .kind = static_cast<uint32_t>(random.below(4)),
                            .bytes = static_cast<int64_t>(random.below(1 << 20)),
                            .held = random.chance(0.2)});
    for (uint32_t i = 0; i < saves; ++i)
      if (random.chance(0.8))
        step.uses.insert(step.uses.begin() + random.below(step.uses.size() + 1), i);
    for (size_t i = 0; i <= step.events(); ++i) {
      step.time_ns.push_back(static_cast<int64_t>(random.below(1 << 20)));
      step.other_bytes.push_back(static_cast<int64_t>(random.below(1 << 20)));
    }
    for (const auto& rule : choice_rules()) {
      const auto choice = choose(rule.name, step, limits(int64_t{1} << 40));
      const auto outcome = foretell(step, choice.away, limits(int64_t{1} << 40));
      ASSERT_TRUE(outcome.done) << seed << rule.name << outcome.reason;
      if (rule.name == "swap" || rule.name == "none") {
        EXPECT_EQ(outcome.clock_ns - 1, step.compute_ns()) << seed;
      }
      choose(rule.name, step, limits(1 << 19));
    }
  }
}

}  // namespace
}  // namespace tierpilot::swap

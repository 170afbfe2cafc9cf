// The guard on streams of rewards that are made up, with known means.
#include "policies/learning/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "policies/placement/measures.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

const std::vector<BoundedMeasure> kMeasures = placement_measures();

double uniform(std::mt19937_64& generator) {
  return std::uniform_real_distribution<>()(generator);
}

// Rewards around a mean, in [-0.25, 1], with a deviation of about 0.2.
double reward_around(double mean, std::mt19937_64& generator) {
  return std::clamp(std::normal_distribution<>(mean, 0.2)(generator), -0.25, 1.0);
}

struct World {
  double policy = 0.6;
  double heuristic = 0.6;
};

// Lives through `decisions`; returns how many of them the policy took.
uint64_t live(Guard& guard, const World& world, uint64_t decisions, std::mt19937_64& generator) {
  uint64_t taken = 0;
  for (uint64_t i = 0; i < decisions; ++i) {
    const auto ticket = guard.next(uniform(generator));
    if (ticket.arm == Arm::kPolicy || ticket.arm == Arm::kShadow)
      guard.answered(DecisionFault::kNone);
    const bool by_policy = ticket.arm == Arm::kPolicy;
    taken += by_policy;
    guard.measured(kReward, ticket,
                   reward_around(by_policy ? world.policy : world.heuristic, generator));
  }
  return taken;
}

uint64_t decisions_until(Guard& guard, Standing standing, const World& world, uint64_t most,
                         std::mt19937_64& generator) {
  uint64_t decisions = 0;
  while (guard.memory().standing != standing && decisions < most) {
    live(guard, world, 1, generator);
    ++decisions;
  }
  return decisions;
}

TEST(ConfidenceSequence, HoldsTheMeanAtEveryLook) {
  int missed = 0;
  constexpr int kRuns = 400;
  for (int run = 0; run < kRuns; ++run) {
    std::mt19937_64 generator(static_cast<uint64_t>(run));
    ConfidenceSequence sequence(-1, 3, 0.05);
    bool inside = true;
    for (int i = 0; i < 2000; ++i) {
      sequence.add(uniform(generator) < 0.3 ? 2 : 0);
      const auto interval = sequence.interval();
      inside = inside && interval.low <= 0.6 && 0.6 <= interval.high;
    }
    missed += !inside;
  }
  EXPECT_LE(missed, kRuns * 5 / 100);
}

TEST(ConfidenceSequence, NarrowsAndNarrowsFasterWhereLittleVaries) {
  std::mt19937_64 generator(1);
  ConfidenceSequence wild(0, 1, 0.05), calm(0, 1, 0.05);
  EXPECT_EQ(wild.interval().low, 0);
  EXPECT_EQ(wild.interval().high, 1);
  for (int i = 0; i < 1000; ++i) {
    wild.add(uniform(generator) < 0.5 ? 1 : 0);
    calm.add(0.5 + 0.01 * uniform(generator));
  }
  EXPECT_LT(wild.interval().high - wild.interval().low, 0.2);
  EXPECT_LT(calm.interval().high - calm.interval().low,
            (wild.interval().high - wild.interval().low) / 2);
  calm.add(NAN);
  EXPECT_EQ(calm.count(), 1000u);
}

TEST(RelativeResponse, IsOneForWhatIsUsualWhateverTheTasksSize) {
  RelativeResponse relative;
  double last = 0;
  for (int i = 0; i < 100; ++i) last = *relative.of(i % 2 ? 30 : 0.003, i % 2 ? 10 : 0.001);
  EXPECT_NEAR(last, 1, 1e-9);
  EXPECT_NEAR(*relative.of(6, 1), 2, 1e-9);
  EXPECT_EQ(*relative.of(1e9, 1), RelativeResponse::kMost);
  EXPECT_FALSE(relative.of(NAN, 1));
  EXPECT_FALSE(relative.of(-1, 1));
  EXPECT_FALSE(relative.of(1, INFINITY));
  EXPECT_TRUE(relative.of(0, 0));
}

TEST(Guard, APolicyThatIsAsGoodIsAlmostNeverDeposed) {
  int deposed = 0;
  constexpr int kRuns = 100;
  for (int run = 0; run < kRuns; ++run) {
    std::mt19937_64 generator(static_cast<uint64_t>(run));
    Guard guard({}, kMeasures);
    live(guard, {0.6, 0.6}, 20'000, generator);  // a round
    deposed += guard.memory().standing != Standing::kTrusted;
  }
  EXPECT_LE(deposed, 1);
}

TEST(Guard, ABetterPolicyKeepsAllButTheControlShare) {
  std::mt19937_64 generator(2);
  Guard guard({}, kMeasures);
  const uint64_t taken = live(guard, {0.7, 0.6}, 60'000, generator);
  EXPECT_EQ(guard.memory().standing, Standing::kTrusted);
  EXPECT_NEAR(static_cast<double>(taken) / 60'000, 0.95, 0.01);
  EXPECT_TRUE(guard.take_events().empty());
}

TEST(Guard, AWorsePolicyIsDeposedSoonerTheWorseItIs) {
  uint64_t slightly = 0, badly = 0;
  for (uint64_t run = 0; run < 10; ++run) {
    std::mt19937_64 generator(run);
    Guard slight({}, kMeasures), bad({}, kMeasures);
    slightly += decisions_until(slight, Standing::kDeposed, {0.5, 0.6}, 20'000, generator);
    badly += decisions_until(bad, Standing::kDeposed, {0.2, 0.6}, 20'000, generator);
    EXPECT_EQ(slight.memory().standing, Standing::kDeposed);
    const auto events = bad.take_events();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].what, "deposed");
    EXPECT_THAT(events[0].why, HasSubstr("it is worse: reward 0."));
  }
  EXPECT_LT(badly / 10, 1500u);
  EXPECT_LT(slightly / 10, 12'000u);
  EXPECT_LT(badly, slightly / 2);
}

TEST(Guard, WhatAPolicyEarnedLongAgoDoesNotCoverWhatItCostsNow) {
  std::mt19937_64 generator(3);
  Guard guard({}, kMeasures);
  live(guard, {0.7, 0.6}, 200'000, generator);
  ASSERT_EQ(guard.memory().standing, Standing::kTrusted);
  const uint64_t late = decisions_until(guard, Standing::kDeposed, {0.2, 0.6}, 60'000, generator);
  EXPECT_LT(late, 25'000u);
}

TEST(Guard, AMendedPolicyComesBackByDegrees) {
  std::mt19937_64 generator(4);
  Guard guard({}, kMeasures);
  decisions_until(guard, Standing::kDeposed, {0.2, 0.6}, 20'000, generator);
  ASSERT_EQ(guard.policy_share(), 0);
  guard.take_events();
  double share = 0;
  for (int i = 0; i < 60'000 && guard.memory().standing != Standing::kTrusted; ++i) {
    live(guard, {0.65, 0.6}, 1, generator);
    EXPECT_GE(guard.policy_share(), share) << "a good policy's share only grows";
    share = guard.policy_share();
  }
  ASSERT_EQ(guard.memory().standing, Standing::kTrusted);
  std::vector<std::string> what;
  for (const auto& event : guard.take_events()) what.push_back(event.what);
  EXPECT_THAT(what, ::testing::ElementsAre("on probation", "share raised", "share raised",
                                           "share raised", "trusted"));
}

TEST(Guard, APolicyThatStaysBadCostsLessAndLess) {
  std::mt19937_64 generator(5);
  Guard guard({}, kMeasures);
  const World world{0.2, 0.6};
  decisions_until(guard, Standing::kDeposed, world, 20'000, generator);
  guard.take_events();
  const uint64_t early = live(guard, world, 50'000, generator);
  const auto flaps = guard.take_events().size();
  live(guard, world, 200'000, generator);
  guard.take_events();
  const uint64_t late = live(guard, world, 50'000, generator);
  const auto late_flaps = guard.take_events().size();
  EXPECT_LT(early, 1000u) << "2 % of its decisions";
  EXPECT_LE(late, early);
  EXPECT_LE(late_flaps, flaps);
  EXPECT_LE(late_flaps, 4u);
}

TEST(Guard, ManyBadAnswersDeposeWhateverTheRewards) {
  Guard guard({}, kMeasures);
  for (int i = 0; i < 19; ++i) guard.answered(DecisionFault::kSlow);
  EXPECT_EQ(guard.memory().standing, Standing::kTrusted);
  guard.answered(DecisionFault::kNotFinite);
  EXPECT_EQ(guard.memory().standing, Standing::kDeposed);
  EXPECT_THAT(guard.take_events().at(0).why, HasSubstr("20 of its last 20 answers"));
  for (int i = 0; i < 1000; ++i) guard.answered(DecisionFault::kSlow);
  EXPECT_EQ(guard.memory().standing, Standing::kDeposed) << "no probation while it stays slow";
  for (int i = 0; i < 100; ++i) guard.answered(DecisionFault::kNone);
  EXPECT_EQ(guard.memory().standing, Standing::kProbation);
}

TEST(Guard, AFewBadAnswersDoNot) {
  std::mt19937_64 generator(6);
  Guard guard({}, kMeasures);
  for (int i = 0; i < 100'000; ++i)
    guard.answered(uniform(generator) < 0.02 ? DecisionFault::kUnfamiliar : DecisionFault::kNone);
  EXPECT_EQ(guard.memory().standing, Standing::kTrusted);
}

TEST(Guard, InShadowTheHeuristicDecidesAndOffThePolicyDoes) {
  GuardMemory memory;
  memory.mode = PolicyMode::kShadow;
  EXPECT_EQ(Guard({}, kMeasures, memory).next(0).arm, Arm::kShadow);
  GuardSettings off;
  off.on = false;
  Guard guard(off, kMeasures);
  std::mt19937_64 generator(7);
  EXPECT_EQ(live(guard, {0.1, 0.6}, 5000, generator), 5000u);
  for (int i = 0; i < 100; ++i) guard.answered(DecisionFault::kFailed);
  EXPECT_EQ(guard.memory().standing, Standing::kTrusted);
}

TEST(Guard, OutcomesOfAnEarlierStandingDoNotCount) {
  Guard guard({}, kMeasures);
  const auto before = guard.next(0);
  guard.start_anew();
  guard.measured(kReward, before, 0.5);
  EXPECT_EQ(guard.comparison(kReward).policy().count, 0u);
  guard.measured(kReward, guard.next(0), 0.5);
  EXPECT_EQ(guard.comparison(kReward).policy().count, 1u);
}

TEST(Guard, ItsMemoryIsTakenUpAndAnOperatorsWordRestoresTrust) {
  std::mt19937_64 generator(8);
  Guard before({}, kMeasures);
  decisions_until(before, Standing::kDeposed, {0.1, 0.6}, 20'000, generator);
  Guard after({}, kMeasures, before.memory());
  EXPECT_EQ(after.memory().standing, Standing::kDeposed);
  EXPECT_EQ(after.memory().why, before.memory().why);
  EXPECT_EQ(after.policy_share(), 0);
  after.set_mode(PolicyMode::kEnforce);
  EXPECT_EQ(after.memory().standing, Standing::kTrusted);
  EXPECT_EQ(after.take_events().back().what, "mode");
  GuardMemory impossible{PolicyMode::kEnforce, Standing::kProbation, 99, 0, ""};
  EXPECT_EQ(Guard({}, kMeasures, impossible).policy_share(), 0.5);
}

TEST(Guard, AMeasureThatNobodyTakesIsRefused) {
  GuardSettings settings;
  settings.judged = "beauty";
  EXPECT_THROW(Guard(settings, kMeasures), std::invalid_argument);
}

TEST(Guard, ItJudgesByTheMeasureItIsToldTo) {
  GuardSettings settings;
  settings.judged = "response";
  Guard guard(settings, kMeasures);
  std::mt19937_64 generator(9);
  for (int i = 0; i < 20'000; ++i) {
    const auto ticket = guard.next(uniform(generator));
    guard.measured(kReward, ticket, ticket.arm == Arm::kPolicy ? 0.1 : 0.9);
  }
  EXPECT_EQ(guard.memory().standing, Standing::kTrusted);
  for (int i = 0; i < 20'000 && guard.memory().standing == Standing::kTrusted; ++i) {
    const auto ticket = guard.next(uniform(generator));
    guard.measured(kResponse, ticket,
                   (ticket.arm == Arm::kPolicy ? 1.5 : 0.9) * (0.5 + uniform(generator)));
  }
  EXPECT_EQ(guard.memory().standing, Standing::kDeposed);
}

}  // namespace
}  // namespace tierpilot

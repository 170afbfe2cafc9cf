// How a library without recomputing learns a step.
#include "policies/swap/learning/step_learner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/swap/observed_chain.h"

namespace tierpilot::swap {
namespace {

class Learning : public testing::Test {
 protected:
  // The step as it would run; the learner hears of it. Advice by save.
  std::vector<char> run(const ObservedStep& step, int64_t peak, int64_t step_ns,
                        int64_t stall_ns = 0) {
    learner.begin();
    std::vector<char> away;
    for (const auto& save : step.saves) away.push_back(learner.save(save).away);
    learner.end({.step = step, .step_ns = step_ns, .stall_ns = stall_ns, .peak_bytes = peak}, 0);
    return away;
  }
  // The same where what it takes depends on what leaves.
  template <class Cost>
  std::vector<char> run_at_cost(const ObservedStep& step, const Cost& step_ns) {
    learner.begin();
    std::vector<char> away;
    for (const auto& save : step.saves) away.push_back(learner.save(save).away);
    learner.end({.step = step, .step_ns = step_ns(away), .peak_bytes = 19 * kMiB}, 0);
    return away;
  }
  // Whether it is looked at closely, which makes it slow.
  bool observed(const ObservedStep& step, int64_t peak) {
    learner.begin();
    bool any = false;
    for (const auto& save : step.saves) any |= learner.save(save).observe;
    learner.end({.step = step, .step_ns = 50'000'000, .peak_bytes = peak}, 0);
    return any;
  }
  // As a program has it: measured all the way only where it was looked at from its begin on.
  bool observed_all_the_way(ObservedStep step) {
    learner.begin();
    bool all = true;
    for (const auto& save : step.saves) all &= learner.save(save).observe;
    if (!all) step.other_bytes.clear();
    learner.end({.step = step, .step_ns = 50'000'000, .peak_bytes = 19 * kMiB}, 0);
    return all;
  }
  // When all of it was saved; none: it is not known.
  std::vector<int64_t> expected_times(const ObservedStep& step) {
    learner.begin();
    for (const auto& save : step.saves) learner.save(save);
    return learner.expected() ? learner.expected()->time_ns : std::vector<int64_t>{};
  }
  StepLearner learner{{.limits = limits(20 * kMiB)}};
};

TEST_F(Learning, TheSecondStepHasAPlan) {
  const auto step = chain_of(20);
  EXPECT_EQ(run(step, 15 * kMiB, 50'000'000), std::vector<char>(20, true));
  const auto second = run(step, 20 * kMiB, 45'000'000);
  const auto kept = std::count(second.begin(), second.end(), 0);
  EXPECT_GE(kept, 7);
  EXPECT_LE(kept, 10);
}

// As where texts of all lengths are trained on, and those of one length again and again.
TEST_F(Learning, ShapesThatNeverRepeatDoNotDriveOutOneThatDoes) {
  const auto usual = chain_of(20);
  for (int i = 0; i < 300; ++i) {
    run(chain_of(20, kMiB + 4096 * (i + 1)), 0, 1);
    if (i > 0) {
      ASSERT_FALSE(expected_times(usual).empty()) << i;
    }
    run(usual, 20 * kMiB, 45'000'000);
  }
  EXPECT_LE(learner.known_steps(), 128U);
}

TEST_F(Learning, AHundredShapesAreKnownAtOnce) {
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 100; ++i) run(chain_of(20, kMiB + 4096 * i), 20 * kMiB, 45'000'000);
  EXPECT_EQ(learner.known_steps(), 100U);
}

TEST_F(Learning, AnotherStepIsToldApartAtItsFirstDifference) {
  const auto step = chain_of(20);
  auto other = chain_of(20);
  other.saves[10].bytes = 2 * kMiB;
  run(step, 0, 1);
  const auto seen = run(other, 0, 1);
  const auto plan = run(step, 0, 1);
  EXPECT_TRUE(std::equal(seen.begin(), seen.begin() + 10, plan.begin()));
  EXPECT_EQ(std::count(seen.begin() + 10, seen.end(), 1), 10);
  EXPECT_EQ(learner.known_steps(), 2U);
}

TEST_F(Learning, APlanThatTookTooMuchLetsMoreLeave) {
  const auto step = chain_of(20);
  for (int i = 0; i < 3; ++i) run(step, 19 * kMiB, 50'000'000);
  const auto before = run(step, 23 * kMiB, 50'000'000);
  const auto after = run(step, 19 * kMiB, 50'000'000);
  EXPECT_GE(std::count(after.begin(), after.end(), 1),
            std::count(before.begin(), before.end(), 1) + 3);
}

constexpr int64_t kLittleOver = 20 * kMiB + kMiB / 4;

TEST_F(Learning, AStepThatTookALittleTooMuchOnceIsNotLookedAtCloselyAgain) {
  const auto step = chain_of(20);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(observed(step, 19 * kMiB)) << i;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(observed(step, i == 1 ? kLittleOver : 19 * kMiB)) << i;
}

TEST_F(Learning, OneThatTookMuchTooMuchIs) {
  const auto step = chain_of(20);
  for (int i = 0; i < 3; ++i) observed(step, 19 * kMiB);
  EXPECT_FALSE(observed(step, 21 * kMiB));
  EXPECT_TRUE(observed(step, 19 * kMiB));
  EXPECT_FALSE(observed(step, 19 * kMiB));
}

TEST_F(Learning, OneThatGoesOnTakingTooMuchIsUntilItIsMended) {
  const auto step = chain_of(20);
  for (int i = 0; i < 3; ++i) observed(step, 19 * kMiB);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(observed(step, kLittleOver)) << i;
  EXPECT_TRUE(observed(step, 19 * kMiB));
  EXPECT_FALSE(observed(step, 19 * kMiB));
}

TEST_F(Learning, AStepThatWentOnOtherwiseOnceSlowsDownOnlyAFew) {
  const auto usual = chain_of(20);
  for (int i = 0; i < 5; ++i) observed_all_the_way(usual);
  auto once = chain_of(20);
  once.saves[10].bytes = 2 * kMiB;
  ASSERT_FALSE(observed_all_the_way(once));
  int looked = 0;
  for (int i = 0; i < 100; ++i) looked += observed_all_the_way(usual);
  EXPECT_GE(looked, 1);
  EXPECT_LE(looked, 4);
}

TEST_F(Learning, OneThatGoesOnOtherwiseNowAndThenIsKnownAtLast) {
  const auto usual = chain_of(20);
  for (int i = 0; i < 5; ++i) observed_all_the_way(usual);
  auto other = chain_of(20);
  other.saves[10].bytes = 2 * kMiB;
  for (int round = 0; round < 8 && learner.known_steps() < 2; ++round) {
    observed_all_the_way(other);
    for (int i = 0; i < 20; ++i) observed_all_the_way(usual);
  }
  EXPECT_EQ(learner.known_steps(), 2U);
  int looked = 0;
  for (int i = 0; i < 20; ++i) looked += observed_all_the_way(usual);
  EXPECT_EQ(looked, 0);
}

// Whatever is seen changes nothing.
TEST_F(Learning, WhereAllLeavesNothingIsLookedForAnyMore) {
  for (const auto* rule : {"swap", "swap-all", "capuchin"}) {
    learner = StepLearner{{.rule = rule, .limits = limits(10 * kMiB)}};
    const auto step = chain_of(20);
    const auto peak = 10 * kMiB + kMiB / 8;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(observed(step, peak)) << rule << i;
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(observed(step, peak)) << rule << i;
  }
}

TEST_F(Learning, TimesOfTheFirstStepCountForNothing) {
  const auto step = chain_of(20);
  run(chain_of(20, kMiB, 500'000'000), 0, 1);
  run(step, 0, 1);
  EXPECT_EQ(expected_times(step), step.time_ns);
}

TEST_F(Learning, TimesOfTellingADeviceAreNoneOfComputing) {
  const auto step = chain_of(20);
  for (int i = 0; i < 3; ++i) run(step, 0, 1);
  for (int i = 0; i < 5; ++i) {
    learner.begin();
    for (const auto& save : step.saves) learner.save(save);
    learner.end({.step = chain_of(20, kMiB, 5), .timed = false, .step_ns = 50'000'000}, 0);
  }
  EXPECT_EQ(expected_times(step), step.time_ns);
}

TEST_F(Learning, WhereTheDeviceHadNoRoomEverythingLeaves) {
  const auto step = chain_of(20);
  for (int i = 0; i < 3; ++i) run(step, 19 * kMiB, 50'000'000);
  learner.begin();
  for (const auto& save : step.saves) learner.save(save);
  learner.failed();
  learner.end({.step = step, .step_ns = 50'000'000}, 0);
  EXPECT_EQ(run(step, 19 * kMiB, 50'000'000), std::vector<char>(20, true));
}

TEST_F(Learning, AfterThatAStepIsPlannedAnewForLessAFewTimes) {
  const auto step = chain_of(20);
  for (int i = 0; i < 3; ++i) run(step, 19 * kMiB, 50'000'000);
  const auto planned = run(step, 19 * kMiB, 50'000'000);
  const auto leaving = [](const std::vector<char>& away) {
    return std::count(away.begin(), away.end(), 1);
  };
  const auto fails = [&] {
    learner.begin();
    learner.save(step.saves[0]);
    learner.failed();
    learner.end({.step = step, .step_ns = 50'000'000}, 0);
    return run(step, 14 * kMiB, 50'000'000);
  };
  learner.set_budget(15 * kMiB);
  EXPECT_EQ(leaving(fails()), 20);
  const auto anew = leaving(run(step, 14 * kMiB, 50'000'000));
  EXPECT_GT(anew, leaving(planned));
  EXPECT_LT(anew, 20);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(leaving(fails()), 20);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(leaving(run(step, 14 * kMiB, 50'000'000)), 20);
}

TEST_F(Learning, AfterATrialWithoutRoomTheBestPlanThatHadComesBack) {
  const auto step = chain_of(20);
  std::vector<char> best;
  for (int i = 0; i < 20; ++i) {
    learner.begin();
    std::vector<char> away;
    for (const auto& save : step.saves) away.push_back(learner.save(save).away);
    if (learner.exploring()) break;
    best = away;
    learner.end({.step = step, .step_ns = 50'000'000, .peak_bytes = 19 * kMiB}, 0);
  }
  ASSERT_TRUE(learner.exploring());
  ASSERT_NE(best, std::vector<char>(20, true));
  EXPECT_TRUE(learner.failed()) << "it was only tried";
  learner.end({.step = step, .step_ns = 50'000'000}, 0);
  EXPECT_EQ(run(step, 14 * kMiB, 90'000'000), std::vector<char>(20, true));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(run(step, 19 * kMiB, 50'000'000, 25'000'000), best) << i;
}

// As where a program looks for the largest batch, and its first operator finds no room.
TEST_F(Learning, AFailureBeforeAnythingWasSavedCostsNoStepThatFollows) {
  learner.failed();
  run(chain_of(20), 0, 1);
  EXPECT_EQ(learner.known_steps(), 1U);
}

TEST_F(Learning, OfAStepThatBrokeOffNothingIsLearned) {
  const auto step = chain_of(20);
  auto part = step;
  part.saves.resize(5);
  learner.begin();
  for (const auto& save : part.saves) learner.save(save);
  learner.failed();
  learner.end({.step = part, .step_ns = 50'000'000}, 0);
  EXPECT_EQ(learner.known_steps(), 0U);
  EXPECT_EQ(run(step, 0, 1), std::vector<char>(20, true));
}

// Without a stall, as on a device that is slow when it is full.
TEST_F(Learning, LetsMoreLeaveWhereThatIsMeasuredToBeFaster) {
  const auto step = chain_of(20, kMiB, 10'000'000);
  const auto slow_when_full = [](const std::vector<char>& away) {
    return 500'000'000 + 5'000'000 * std::count(away.begin(), away.end(), 0);
  };
  std::vector<char> away(20, true);
  for (int i = 0; i < 14; ++i) away = run_at_cost(step, slow_when_full);
  EXPECT_EQ(std::count(away.begin(), away.end(), 1), 20);
}

TEST_F(Learning, KeepsThePlanWhereMoreCopiesAreMeasuredToBeSlower) {
  const auto step = chain_of(20, kMiB, 10'000'000);
  const auto slow_copies = [](const std::vector<char>& away) {
    return 500'000'000 + 20'000'000 * std::count(away.begin(), away.end(), 1);
  };
  std::vector<char> away(20, true);
  for (int i = 0; i < 14; ++i) away = run_at_cost(step, slow_copies);
  EXPECT_LE(std::count(away.begin(), away.end(), 1), 13);
}

// Other programs and what follows the passes take much more than the plans differ in, and not from
// all alike.
TEST_F(Learning, WhatOthersTakeAndWhatFollowsThePassesCountsForNoPlan) {
  const auto step = chain_of(20, kMiB, 10'000'000);
  const auto cost_ns = [](const std::vector<char>& away) {
    return 500'000'000 + 5'000'000 * std::count(away.begin(), away.end(), 0);
  };
  std::vector<char> away(20, true);
  for (int i = 0; i < 14; ++i) {
    learner.begin();
    away.clear();
    for (const auto& save : step.saves) away.push_back(learner.save(save).away);
    const auto stay = std::count(away.begin(), away.end(), 0);
    const int64_t others_ns = 20'000'000 * (20 - stay), behind_ns = 30'000'000 * (20 - stay);
    learner.end({.step = step,
                 .step_ns = cost_ns(away) + others_ns + behind_ns,
                 .peak_bytes = 19 * kMiB,
                 .passes_ns = cost_ns(away) + others_ns,
                 .others_ns = others_ns},
                0);
  }
  EXPECT_EQ(std::count(away.begin(), away.end(), 1), 20);
}

// Whatever steps take, what is tried is foretold to be little worse, and the best one is kept.
TEST_F(Learning, ExploringEndsWithTheBestThatWasTried) {
  const auto step = chain_of(20);
  SeededRandom random(1);
  const auto measured = [&](const std::vector<char>& away) {
    int64_t ns = 40'000'000;
    for (size_t i = 0; i < away.size(); ++i)
      if (away[i]) ns += step.saves[i].kind == 1 ? 3'000'000 : 500'000;
    return ns;
  };
  run(step, 19 * kMiB, 60'000'000);
  std::vector<char> away;
  int64_t first = 0, last = 0;
  std::vector<char> plan = run(step, 19 * kMiB, 60'000'000, 3'000'000);
  for (int i = 0; i < 80; ++i) {
    // The measured time depends on what the learner advises, which is only known with the step.
    learner.begin();
    away.clear();
    for (const auto& save : step.saves) away.push_back(learner.save(save).away);
    last = measured(away);
    if (i == 0) first = last;
    const auto outcome = foretell(step, away, limits(20 * kMiB));
    EXPECT_TRUE(outcome.done);
    learner.end({.step = step, .step_ns = last, .stall_ns = last / 10, .peak_bytes = 20 * kMiB}, 0);
  }
  EXPECT_LE(last, first);
}

// States of an optimiser are waited for behind the passes, whatever the plan is.
TEST_F(Learning, NothingIsTriedForWaitsBehindThePasses) {
  const auto step = chain_of(20);
  const auto runs = [&](StepEnd end) {
    StepLearner learner({.rule = "swap", .limits = limits(20 * kMiB)});
    std::set<std::vector<char>> plans;
    for (int i = 0; i < 40; ++i) {
      learner.begin();
      std::vector<char> away;
      for (const auto& save : step.saves) away.push_back(learner.save(save).away);
      if (i >= 20) plans.insert(away);  // more than has to leave was tried by then
      end.step = step;
      learner.end(end, 0);
    }
    return plans.size();
  };
  StepEnd end{.step_ns = 60'000'000, .stall_ns = 9'000'000, .peak_bytes = 20 * kMiB};
  end.passes_ns = 50'000'000;
  EXPECT_EQ(runs(end), 1);
  end.passes_stall_ns = 9'000'000;
  EXPECT_GT(runs(end), 1);
}

// As of a model with two heads.
TEST_F(Learning, BackwardPassesThatTakeTurnsAreNotPlannedForEver) {
  const auto one = chain_of(20);
  auto other = one;
  std::swap(other.uses[3], other.uses[4]);
  run(one, 19 * kMiB, 50'000'000);
  for (int i = 0; i < 20; ++i) run(i % 2 == 0 ? other : one, 19 * kMiB, 50'000'000);
  EXPECT_FALSE(observed(other, 19 * kMiB));
  EXPECT_FALSE(observed(one, 19 * kMiB));
}

TEST_F(Learning, ABackwardPassThatTookTheOthersPlaceIsTheOneToExpect) {
  const auto one = chain_of(20);
  auto other = one;
  std::swap(other.uses[3], other.uses[4]);
  for (int i = 0; i < 5; ++i) run(one, 19 * kMiB, 50'000'000);
  for (int i = 0; i < 3; ++i) run(other, 19 * kMiB, 50'000'000);
  learner.begin();
  for (const auto& save : one.saves) learner.save(save);
  ASSERT_NE(learner.expected(), nullptr);
  EXPECT_EQ(learner.expected()->uses, other.uses);
}

TEST(PublishedLearning, GoesOnAfterARoundWithoutRoom) {
  StepLearner learner({.rule = "q-published", .limits = limits(20 * kMiB)});
  const auto step = chain_of(20);
  std::set<std::vector<char>> plans;
  for (int i = 0; i < 60; ++i) {
    learner.begin();
    std::vector<char> away;
    for (const auto& save : step.saves) away.push_back(learner.save(save).away);
    if (i == 10) learner.failed();
    if (i == 11) EXPECT_EQ(away, std::vector<char>(20, true)) << "the step that runs again";
    if (i > 11) plans.insert(away);
    learner.end({.step = step, .step_ns = 50'000'000, .peak_bytes = 19 * kMiB}, 0);
  }
  EXPECT_GT(plans.size(), 1u);
}

}  // namespace
}  // namespace tierpilot::swap

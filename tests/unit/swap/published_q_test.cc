// The published learner's rules, as its publication has them.
#include "policies/swap/learning/published_q.h"

#include <gtest/gtest.h>

#include <set>

#include "policies/swap/learning/step_learner.h"

namespace tierpilot::swap {
namespace {

using Plan = std::vector<char>;

TEST(PublishedQ, TheRewardIsBetweenTimeAndMemory) {
  EXPECT_DOUBLE_EQ(PublishedQ({1}, {0}, {.w = 0}).reward(2, 0.5), 2);
  EXPECT_DOUBLE_EQ(PublishedQ({1}, {0}, {.w = 1}).reward(2, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(PublishedQ({1}, {0}, {.w = 0.25}).reward(2, 1), 1.75);
}

TEST(PublishedQ, AnActionChangesTheTensorsOfOneLayerTypeOnly) {
  const std::vector<uint32_t> kinds{7, 8, 7, 9, 8};
  PublishedQ learner(kinds, Plan(5, 1), {.epsilon = 1});
  auto before = learner.plan();
  EXPECT_EQ(before, Plan(5, 1));
  std::set<Plan> seen;
  for (int round = 0; round < 100; ++round) {
    learner.end_round(1, 1);
    std::set<uint32_t> changed;
    for (size_t i = 0; i < kinds.size(); ++i)
      if (learner.plan()[i] != before[i]) changed.insert(kinds[i]);
    EXPECT_LE(changed.size(), 1U);
    EXPECT_EQ(learner.plan()[0], learner.plan()[2]);
    EXPECT_EQ(learner.plan()[1], learner.plan()[4]);
    before = learner.plan();
    seen.insert(before);
  }
  EXPECT_EQ(seen.size(), 8U) << "all plans of three layer types";
}

// Time rises with layer types 0 and 1 away, memory falls most with type 2 away: {0, 0, 1} is best.
TEST(PublishedQ, LearnsThePlanOfTheLeastReward) {
  const auto rounds = [](uint64_t seed) {
    PublishedQ learner({0, 1, 2}, Plan{1, 1, 1}, {.seed = seed});
    int best = 0;
    for (int round = 0; round < 3000; ++round) {
      const auto& plan = learner.plan();
      best += round >= 2000 && plan == Plan{0, 0, 1};
      learner.end_round(1.0 + 0.8 * plan[0] + 0.8 * plan[1] + 0.1 * plan[2],
                        2.0 - 0.1 * plan[0] - 0.1 * plan[1] - 1.5 * plan[2]);
    }
    return best;
  };
  for (const uint64_t seed : {1, 2, 3}) EXPECT_GT(rounds(seed), 500) << seed;
  EXPECT_EQ(rounds(4), rounds(4));
}

TEST(PublishedQ, NothingToDecideIsNoCrash) {
  PublishedQ learner({}, {});
  learner.end_round(1, 1);
  EXPECT_TRUE(learner.plan().empty());
}

TEST(StepLearner, QPublishedTriesPlansAndLetsWhatIsHeldStay) {
  ObservedStep step;
  for (uint32_t i = 0; i < 4; ++i)
    step.saves.push_back({.place = i + 1, .kind = i / 2, .bytes = 100, .held = i == 1});
  step.uses = {3, 2, 1, 0};
  step.time_ns.assign(9, 1000);
  step.other_bytes.assign(9, 0);
  StepLearner learner(
      {.rule = "q-published", .limits = {.budget_bytes = 300, .link = {.gb_per_s = 1}}});
  std::set<Plan> plans;
  for (int run = 0; run < 60; ++run) {
    Plan away;
    learner.begin();
    for (const auto& save : step.saves) away.push_back(learner.save(save).away);
    if (run > 0) {
      EXPECT_FALSE(away[1]);
      EXPECT_EQ(away[2], away[3]);
      plans.insert(away);
    }
    learner.end({.step = step, .step_ns = 9000, .peak_bytes = 250}, 0);
  }
  EXPECT_EQ(plans.size(), 4U);
}

}  // namespace
}  // namespace tierpilot::swap

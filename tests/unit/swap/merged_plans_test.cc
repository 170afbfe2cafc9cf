// Two programs keep what they learned in one file.
#include "policies/swap/learning/merged_plans.h"

#include <gtest/gtest.h>

namespace tierpilot::swap {
namespace {

// Of one save, whose margin tells whose it is.
KeptStep step(uint64_t place, int64_t margin_bytes, int explorations = 0, bool ran = true) {
  return {.step = {.saves = {{.place = place, .bytes = 100}}},
          .margin_bytes = margin_bytes,
          .explorations = explorations,
          .ran = ran};
}

std::vector<std::pair<uint64_t, int64_t>> found(const KeptPlans& plans) {
  std::vector<std::pair<uint64_t, int64_t>> all;
  for (const auto& kept : plans.steps)
    all.emplace_back(kept.step.saves[0].place, kept.margin_bytes);
  return all;
}

using Found = std::vector<std::pair<uint64_t, int64_t>>;
constexpr int64_t kOurs = 1, kTheirs = 2;

TEST(MergedPlans, HaveTheStepsOfBothOursLast) {
  const auto both = merged({.steps = {step(1, kOurs), step(2, kOurs, 0, false)}},
                           {.steps = {step(3, kTheirs), step(4, kTheirs)}});
  EXPECT_EQ(found(both), (Found{{3, kTheirs}, {4, kTheirs}, {2, kOurs}, {1, kOurs}}));
}

TEST(MergedPlans, OfOneStepTheOneThatWasTriedMoreStays) {
  EXPECT_EQ(found(merged({.steps = {step(1, kOurs, 2)}}, {.steps = {step(1, kTheirs, 3)}})),
            (Found{{1, kTheirs}}));
  EXPECT_EQ(found(merged({.steps = {step(1, kOurs, 3)}}, {.steps = {step(1, kTheirs, 3)}})),
            (Found{{1, kOurs}}))
      << "the later";
  auto wider = step(1, kOurs, 2);
  wider.widened = 2;
  EXPECT_EQ(found(merged({.steps = {wider}}, {.steps = {step(1, kTheirs, 3)}})),
            (Found{{1, kOurs}}));
  auto other_size = step(1, kOurs);
  other_size.step.saves[0].bytes = 99;
  EXPECT_EQ(merged({.steps = {other_size}}, {.steps = {step(1, kTheirs, 3)}}).steps.size(), 2U);
}

TEST(MergedPlans, WhatDidNotRunHereIsNoNewer) {
  EXPECT_EQ(found(merged({.steps = {step(1, kOurs, 3, false)}}, {.steps = {step(1, kTheirs, 3)}})),
            (Found{{1, kTheirs}}));
}

TEST(MergedPlans, WhatMemoryDidNotSufficeForIsOfNeither) {
  auto failed = step(1, kOurs);
  failed.fits = false;
  const auto both = merged({.steps = {failed}}, {.steps = {step(1, kTheirs, 3), step(2, kTheirs)}});
  EXPECT_EQ(found(both), (Found{{2, kTheirs}}));
  EXPECT_TRUE(merged({.steps = {failed}}, {}).steps.empty());
}

TEST(MergedPlans, OfMoreThanCanBeKnownTheLastAreOurs) {
  KeptPlans ours, theirs;
  for (uint64_t i = 0; i < kMostKnownSteps; ++i) {
    ours.steps.push_back(step(2 * i, kOurs));
    theirs.steps.push_back(step(2 * i + 1, kTheirs));
  }
  EXPECT_EQ(found(merged(ours, theirs)), found(ours));
  ours.steps.resize(3);
  const auto some = merged(ours, theirs);
  ASSERT_EQ(some.steps.size(), kMostKnownSteps);
  EXPECT_EQ(some.steps[0].step.saves[0].place, 7U);
  ours.steps.resize(1);
  ours.steps[0].step.saves.resize(kMostKnownSaves);
  EXPECT_EQ(merged(ours, theirs).steps.size(), kFewKnownSteps) << "their saves are too many";
  ours.steps[0].step.saves.resize(500'000);
  EXPECT_EQ(merged(ours, theirs).steps.size(), 1U) << "for a file";
}

TEST(MergedPlans, SegmentsAndTheRoomOfStatesAreOursWhereTheyRan) {
  const KeptPlans ours{.segments = {{.first = 1, .again = {{5, true}}},
                                    {.first = 2, .again = {{5, true}}, .ran = false}}};
  const KeptPlans theirs{.segments = {{.first = 1}, {.first = 2}, {.first = 3}}, .state_room = 7};
  auto both = merged(ours, theirs);
  ASSERT_EQ(both.segments.size(), 3U);
  EXPECT_EQ(both.segments[0].first, 1U);
  EXPECT_EQ(both.segments[0].again.size(), 1U);
  EXPECT_EQ(both.segments[1].first, 2U);
  EXPECT_TRUE(both.segments[1].again.empty());
  EXPECT_EQ(both.state_room, 7);
  EXPECT_EQ(merged({.state_room = 3}, theirs).state_room, 3);
}

}  // namespace
}  // namespace tierpilot::swap

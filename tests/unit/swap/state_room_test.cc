// How much of an optimiser's states stays: by what is foretold, and then by what steps took.
#include "policies/swap/learning/state_room.h"

#include <gtest/gtest.h>

#include <map>

namespace tierpilot::swap {
namespace {

constexpr int64_t kStates = 400;

StepWithStates states_step_of(int64_t cost_ns, int64_t staying_bytes = 0) {
  return {.cost_ns = cost_ns,
          .wait_ns = 100,
          .peak_bytes = 990,
          .target_bytes = 1000,
          .state_bytes = kStates,
          .staying_bytes = staying_bytes,
          .updated = true,
          .settled = true};
}

// By the bytes beside; nothing fits beside more than the last.
struct Foretold {
  std::map<int64_t, double> costs;
  int asked = 0;

  std::optional<double> operator()(int64_t bytes) {
    ++asked;
    const auto found = costs.lower_bound(bytes);
    return found == costs.end() ? std::nullopt : std::optional(found->second);
  }
};

StateRoom::Foretell by(Foretold& foretold) {
  return [&foretold](int64_t bytes) { return foretold(bytes); };
}

TEST(StateRoom, WhatSavesMoreWaitsThanItCostsIsTriedAndStaysWhereItWasNoSlower) {
  Foretold cheap{{{0, 1000}, {kStates, 1050}}};
  StateRoom room;
  EXPECT_FALSE(room.step_ended(states_step_of(1200), by(cheap)));
  EXPECT_EQ(room.bytes(), 0) << "one step may be disturbed";
  EXPECT_TRUE(room.step_ended(states_step_of(1180), by(cheap)));
  EXPECT_EQ(room.bytes(), kStates) << "100 ns of waits for 50 ns";
  EXPECT_FALSE(room.decided());
  EXPECT_FALSE(room.step_ended(states_step_of(1300, kStates), by(cheap)));
  EXPECT_FALSE(room.step_ended(states_step_of(1185, kStates), by(cheap))) << "nothing changes";
  EXPECT_EQ(room.bytes(), StateRoom::kAll);
  EXPECT_TRUE(room.decided());
}

TEST(StateRoom, WhatWasSlowerLeavesAgainForGood) {
  Foretold cheap{{{0, 1000}, {kStates, 1050}}};
  StateRoom room;
  for (int i = 0; i < 2; ++i) room.step_ended(states_step_of(1200), by(cheap));
  EXPECT_EQ(room.bytes(), kStates);
  EXPECT_FALSE(room.step_ended(states_step_of(1260, kStates), by(cheap)));
  EXPECT_TRUE(room.step_ended(states_step_of(1240, kStates), by(cheap)));
  const int asked = cheap.asked;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(room.step_ended(states_step_of(1200), by(cheap)));
  EXPECT_EQ(room.bytes(), 0);
  EXPECT_EQ(cheap.asked, asked) << "no second try";
}

TEST(StateRoom, APartStaysWhereAllWouldNotFitOrCostMore) {
  Foretold half{{{0, 1000}, {kStates / 2, 1020}}},
      dear{{{0, 1000}, {kStates / 4, 1010}, {kStates, 1090}}};
  StateRoom first, second;
  for (int i = 0; i < 2; ++i) first.step_ended(states_step_of(1200), by(half));
  EXPECT_EQ(first.bytes(), kStates / 2);
  for (int i = 0; i < 2; ++i) second.step_ended(states_step_of(1200), by(dear));
  EXPECT_EQ(second.bytes(), kStates / 4) << "15 ns gained; 10 with all of them";
}

TEST(StateRoom, NothingStaysWhereItCostsMoreOrNothingIsForetold) {
  Foretold dear{{{0, 1000}, {kStates, 1200}}}, nothing{};
  for (auto* foretold : {&dear, &nothing}) {
    StateRoom room;
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(room.step_ended(states_step_of(1200), by(*foretold)));
    EXPECT_EQ(room.bytes(), 0);
    EXPECT_TRUE(room.decided());
  }
}

TEST(StateRoom, WhereAllFitBesideTheMostOfASettledStepAllStay) {
  Foretold nothing{};
  StateRoom room;
  auto step = states_step_of(1200);
  step.peak_bytes = 601;
  room.step_ended(step, by(nothing));
  EXPECT_EQ(room.bytes(), 0) << "one too many";
  step.peak_bytes = 600;
  step.settled = false;
  room.step_ended(step, by(nothing));
  EXPECT_EQ(room.bytes(), 0) << "something was tried";
  step.settled = true;
  room.step_ended(step, by(nothing));
  EXPECT_EQ(room.bytes(), 0) << "the next one may be of another kind";
  EXPECT_TRUE(room.step_ended(step, by(nothing)));
  EXPECT_EQ(room.bytes(), StateRoom::kAll);
  step.peak_bytes = 1000, step.staying_bytes = kStates;
  room.step_ended(step, by(nothing));
  EXPECT_EQ(room.bytes(), StateRoom::kAll) << "they are a part of it";
}

TEST(StateRoom, WhatDidNotFitAfterAllIsTriedAgainAfterManySteps) {
  Foretold nothing{};
  StateRoom room;
  auto roomy = states_step_of(1200), over = states_step_of(1200, kStates);
  roomy.peak_bytes = 600;
  over.fits = false, over.settled = false;
  for (int i = 0; i < 2; ++i) room.step_ended(roomy, by(nothing));
  EXPECT_EQ(room.bytes(), StateRoom::kAll);
  EXPECT_TRUE(room.step_ended(over, by(nothing)));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(room.step_ended(roomy, by(nothing)));
  EXPECT_EQ(room.bytes(), 0);
  for (int again = 0; again < 3; ++again) {
    for (int i = 0; i < 100; ++i) room.step_ended(roomy, by(nothing));
    EXPECT_EQ(room.bytes(), StateRoom::kAll);
    EXPECT_TRUE(room.step_ended(over, by(nothing)));
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(room.step_ended(roomy, by(nothing))) << again;
    EXPECT_EQ(room.bytes(), 0) << again;
  }
}

// Several passes that add up to one step of the optimiser.
TEST(StateRoom, StepsWithoutAnUpdateTellNothing) {
  Foretold cheap{{{0, 1000}, {kStates, 1050}}};
  auto pass = states_step_of(600), update = states_step_of(1200);
  pass.updated = false, pass.wait_ns = 0, pass.least_away_bytes = kStates;
  StateRoom weighed, in_vain;
  for (int i = 0; i < 2; ++i)
    weighed.step_ended(pass, by(cheap)), weighed.step_ended(update, by(cheap));
  EXPECT_EQ(weighed.bytes(), kStates) << "waits are those of updates";
  update.peak_bytes = 1500, update.passes_peak_bytes = 1100, update.fits = false;
  for (int i = 0; i < 2; ++i)
    in_vain.step_ended(pass, by(cheap)), in_vain.step_ended(update, by(cheap));
  EXPECT_EQ(in_vain.bytes(), StateRoom::kAll);
}

TEST(StateRoom, AStepThatDoesNotFitLetsAllLeave) {
  Foretold cheap{{{0, 1000}, {kStates, 1050}}};
  StateRoom room;
  for (int i = 0; i < 2; ++i) room.step_ended(states_step_of(1200), by(cheap));
  auto step = states_step_of(1100, kStates);
  step.fits = false, step.settled = false;
  EXPECT_TRUE(room.step_ended(step, by(cheap)));
  EXPECT_EQ(room.bytes(), 0);
  EXPECT_FALSE(room.step_ended(step, by(cheap))) << "there is nothing left to do";
}

// One large parameter's: they are all there when it is updated, whatever was away before.
TEST(StateRoom, WhatLeavesInVainStays) {
  Foretold nothing{};
  auto step = states_step_of(1200);
  step.peak_bytes = 1500, step.fits = false, step.settled = false;
  step.passes_peak_bytes = 1100, step.least_away_bytes = 0;
  StateRoom room;
  EXPECT_FALSE(room.step_ended(step, by(nothing)));
  EXPECT_TRUE(room.step_ended(step, by(nothing)));
  EXPECT_EQ(room.bytes(), StateRoom::kAll);
  step.staying_bytes = kStates;
  EXPECT_FALSE(room.step_ended(step, by(nothing))) << "it is no more than before";
  EXPECT_EQ(room.bytes(), StateRoom::kAll);
  step.peak_bytes = 1800;
  EXPECT_FALSE(room.step_ended(step, by(nothing))) << "one may be disturbed";
  EXPECT_TRUE(room.step_ended(step, by(nothing)));
  EXPECT_EQ(room.bytes(), 0) << "it is";
  step.peak_bytes = 1500, step.staying_bytes = 0;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(room.step_ended(step, by(nothing))) << "not again";
}

TEST(StateRoom, WhatMakesRoomLeaves) {
  Foretold nothing{};
  auto step = states_step_of(1200);
  step.peak_bytes = 1500, step.fits = false, step.settled = false;
  for (const auto& [passes_bytes, away_bytes] :
       {std::pair{1101, 0}, std::pair{900, 26}, std::pair{0, 0}}) {
    step.passes_peak_bytes = passes_bytes, step.least_away_bytes = away_bytes;
    StateRoom room;
    for (int i = 0; i < 4; ++i) room.step_ended(step, by(nothing));
    EXPECT_EQ(room.bytes(), 0) << passes_bytes;
  }
}

TEST(StateRoom, WhatAnotherRunFoundIsNotTriedAgain) {
  Foretold cheap{{{0, 1000}, {kStates, 1050}}};
  StateRoom room;
  room.restore(kStates / 2);
  for (int i = 0; i < 4; ++i)
    EXPECT_FALSE(room.step_ended(states_step_of(1200, kStates / 2), by(cheap)));
  EXPECT_EQ(room.bytes(), kStates / 2);
}

// The file names no model: this one is larger.
TEST(StateRoom, WhatAnotherRunFoundIsLeftWhereItDoesNotFit) {
  Foretold cheap{{{0, 1000}, {kStates, 1050}}};
  StateRoom room;
  room.restore(StateRoom::kAll);
  auto over = states_step_of(1200, kStates);
  over.fits = false;
  EXPECT_TRUE(room.step_ended(over, by(cheap)));
  EXPECT_EQ(room.bytes(), 0);
  for (int i = 0; i < 2; ++i) room.step_ended(states_step_of(1200), by(cheap));
  EXPECT_EQ(room.bytes(), kStates) << "it is weighed as by who knows nothing";
}

}  // namespace
}  // namespace tierpilot::swap

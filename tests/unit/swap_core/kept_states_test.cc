// Which states leave, and in which order they come back.
#include "swap/kept_states.h"

#include <gtest/gtest.h>

namespace tierpilot::swap {
namespace {

// A step that took `peak_bytes` of 100.
StepWithStates settled(int64_t peak_bytes) {
  return {.peak_bytes = peak_bytes, .target_bytes = 100, .settled = true};
}
std::optional<double> nothing(int64_t) {
  return std::nullopt;
}

TEST(KeptStates, LeaveOrStayAsThePolicySays) {
  SlotTable slots;
  for (const auto* rule : {"swap-all", "none", "vdnn", "checkpoint"}) {
    KeptStates states(rule);
    const bool all = rule == std::string("swap-all");
    for (int step = 0; step < 3; ++step) {
      const auto id = slots.add(10, nullptr, true);
      EXPECT_EQ(states.kept(id, *slots.find(id)), all) << rule;
      auto over = settled(all ? 1 : 500);
      over.fits = all;
      EXPECT_FALSE(states.step_ended(over, nothing));
      EXPECT_EQ(states.leave(), all) << rule << ": however much room there is, or little";
    }
  }
}

TEST(KeptStates, StayWhereAllOfThemFitBesideTheMostOfASettledStep) {
  SlotTable slots;
  KeptStates states("swap");
  std::vector<Id> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(slots.add(10, nullptr, true));
  for (const int64_t peak : {71, 71, 70, 70}) {
    EXPECT_TRUE(states.leave()) << "nothing is known, or it is one too many";
    for (const auto id : ids) states.ended(*slots.find(id));
    for (const auto id : ids) EXPECT_TRUE(states.kept(id, *slots.find(id)));
    EXPECT_EQ(states.bytes(), 30);
    states.step_ended(settled(peak), nothing);
  }
  EXPECT_FALSE(states.leave());
  for (const auto id : ids) states.ended(*slots.find(id));
  auto over = settled(500);
  over.fits = false;
  EXPECT_TRUE(states.step_ended(over, nothing)) << "though nobody has told of them since";
  EXPECT_TRUE(states.leave());
}

TEST(KeptStates, ThoseThatAreAskedForFirstStayWhereThereIsRoomForSome) {
  SlotTable slots;
  KeptStates states("swap");
  states.restore(25);
  std::vector<Id> ids;
  std::vector<bool> left;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(slots.add(10, nullptr, true));
    left.push_back(states.kept(ids.back(), *slots.find(ids.back())));
  }
  EXPECT_EQ(left, (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ(states.staying_bytes(), 20);
  EXPECT_TRUE(states.leave());
  for (int i = 0; i < 4; ++i) {  // the next step asks for one after the other
    states.ended(*slots.find(ids[i]));
    EXPECT_EQ(states.kept(ids[i], *slots.find(ids[i])), left[i]) << i;
  }
  EXPECT_EQ(states.decided(), 25);
}

TEST(KeptStates, AreInTheOrderInWhichTheyWereKeptUntilTheyAreAskedFor) {
  SlotTable slots;
  KeptStates states("swap");
  std::vector<Id> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(slots.add(10, nullptr, true));
    states.kept(ids.back(), *slots.find(ids.back()));
  }
  states.ended(*slots.find(ids[1]));
  states.ended(*slots.find(ids[1]));
  states.kept(ids[1], *slots.find(ids[1]));
  std::vector<Id> order;
  for (const auto& [place, kept] : states.order()) order.push_back(kept.id);
  EXPECT_EQ(order, (std::vector<Id>{ids[0], ids[2], ids[3], ids[1]}));
  EXPECT_EQ(states.bytes(), 40);
}

TEST(SlotTable, WhatIsKeptIsNoneOfTheSavesInTheDevice) {
  SlotTable slots;
  std::byte data[8];
  slots.add(7, data);
  const auto kept = slots.add(100, data, true);
  EXPECT_EQ(slots.totals().resident_bytes, 7);
  slots.leave(kept);
  slots.copied_out(kept, {.tier = 0, .offset = 0, .bytes = 100});
  EXPECT_EQ(slots.next_copied(), kept);
  slots.let_go(kept);
  EXPECT_EQ(slots.totals().away, 1U);
  slots.fetch(kept, data);
  slots.copied_in(kept, true);
  EXPECT_EQ(slots.totals().resident_bytes, 7);
  EXPECT_EQ(slots.remove(kept).bytes, 100);
  EXPECT_EQ(slots.totals().resident_bytes, 7);
  EXPECT_EQ(slots.totals().peak_bytes, 7);
}

}  // namespace
}  // namespace tierpilot::swap

// Which states leave, and in which order they come back.
#include "swap/kept_states.h"

#include <gtest/gtest.h>

namespace tierpilot::swap {
namespace {

constexpr int64_t kTarget = 100;

TEST(KeptStates, LeaveOrStayAsThePolicySays) {
  EXPECT_TRUE(KeptStates("swap-all").leave());
  for (const auto* rule : {"none", "vdnn", "checkpoint"}) EXPECT_FALSE(KeptStates(rule).leave());
  KeptStates all("swap-all"), nothing("none");
  all.step_ended(1, kTarget, true, true);
  nothing.step_ended(500, kTarget, false, true);
  EXPECT_TRUE(all.leave()) << "however much room there is";
  EXPECT_FALSE(nothing.leave()) << "however little";
}

TEST(KeptStates, StayWhereAllOfThemFitBesideTheMostOfASettledStep) {
  SlotTable slots;
  KeptStates states("swap");
  for (int i = 0; i < 3; ++i) {
    const auto id = slots.add(10, nullptr, true);
    states.kept(id, *slots.find(id));
  }
  EXPECT_EQ(states.bytes(), 30);
  EXPECT_TRUE(states.leave()) << "nothing is known";
  states.step_ended(71, kTarget, true, true);
  EXPECT_TRUE(states.leave()) << "one too many";
  states.step_ended(70, kTarget, true, false);
  EXPECT_TRUE(states.leave()) << "something was tried";
  states.step_ended(70, kTarget, true, true);
  EXPECT_FALSE(states.leave());
  states.step_ended(100, kTarget, true, true);
  EXPECT_FALSE(states.leave()) << "they are a part of it";
  states.step_ended(101, kTarget, false, false);
  EXPECT_TRUE(states.leave());
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
  for (const auto& [place, id] : states.order()) order.push_back(id);
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

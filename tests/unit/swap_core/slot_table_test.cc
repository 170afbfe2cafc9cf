// Where saved storages are: what is in the device counts there, whichever way it goes.
#include "swap/slot_table.h"

#include <gtest/gtest.h>

namespace tierpilot::swap {
namespace {

using State = Slot::State;
constexpr Block kPlace{.tier = 0, .offset = 64, .bytes = 100};

TEST(SlotTable, OutAndBack) {
  SlotTable slots;
  const auto id = slots.add(100, nullptr);
  EXPECT_EQ(slots.totals().resident_bytes, 100);
  slots.leave(id);
  EXPECT_EQ(slots.totals().leaving, 1U);
  slots.copied_out(id, kPlace);
  EXPECT_EQ(slots.totals().leaving, 0U);
  EXPECT_EQ(slots.totals().resident_bytes, 100) << "until the front end has heard of it";
  EXPECT_EQ(slots.next_copied(), id);
  EXPECT_EQ(slots.next_copied(), 0U);
  slots.let_go(id);
  EXPECT_EQ(slots.totals().resident_bytes, 0);
  EXPECT_EQ(slots.totals().away, 1U);
  std::byte data[100];
  slots.fetch(id, data);
  EXPECT_TRUE(slots.coming(id));
  EXPECT_EQ(slots.totals().resident_bytes, 100);
  EXPECT_EQ(slots.totals().coming_bytes, 100);
  slots.copied_in(id, true);
  EXPECT_FALSE(slots.coming(id));
  EXPECT_EQ(slots.totals().coming_bytes, 0);
  EXPECT_EQ(slots.find(id)->state, State::kBack);
  EXPECT_EQ(slots.remove(id).offset, kPlace.offset);
  EXPECT_EQ(slots.totals().resident_bytes, 0);
  EXPECT_EQ(slots.totals().peak_bytes, 100);
  EXPECT_EQ(slots.find(id), nullptr);
}

TEST(SlotTable, WhatWasAskedForMeanwhileStays) {
  SlotTable slots;
  const auto early = slots.add(10, nullptr), late = slots.add(10, nullptr);
  slots.leave(early);
  slots.find(early)->used = true;
  slots.copied_out(early, kPlace);
  EXPECT_EQ(slots.find(early)->state, State::kBack);
  slots.leave(late);
  slots.copied_out(late, kPlace);
  slots.keep(late);
  EXPECT_EQ(slots.next_copied(), 0U) << "the front end is to hear of neither";
  EXPECT_EQ(slots.totals().resident_bytes, 20);
}

TEST(SlotTable, WithoutACopyItStaysUnlessItWasDropped) {
  SlotTable slots;
  const auto kept = slots.add(10, nullptr), dropped = slots.add(10, nullptr);
  EXPECT_FALSE(slots.drop_later(kept)) << "no copy is under way";
  slots.leave(kept);
  slots.leave(dropped);
  EXPECT_TRUE(slots.drop_later(dropped));
  EXPECT_TRUE(slots.not_copied(kept));
  EXPECT_FALSE(slots.not_copied(dropped));
  EXPECT_EQ(slots.find(kept)->state, State::kHere);
  EXPECT_EQ(slots.next_copied(), dropped);
}

TEST(SlotTable, AnIdThatIsGivenAgainIsAnotherStorage) {
  SlotTable slots;
  const auto first = slots.add(10, nullptr);
  slots.leave(first);
  slots.copied_out(first, kPlace);
  slots.keep(first);
  EXPECT_TRUE(slots.remove(first).exists());
  const auto again = slots.add(20, nullptr);
  EXPECT_EQ(again, first);
  EXPECT_EQ(slots.next_copied(), 0U);
  EXPECT_FALSE(slots.remove(again).exists());
  EXPECT_EQ(slots.totals().resident_bytes, 0);
}

}  // namespace
}  // namespace tierpilot::swap

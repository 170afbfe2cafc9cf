#include "policies/scheduling/held_tasks.h"

#include <gmock/gmock.h>

namespace tierpilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kA = 3, kB = 8;

class HeldTasksTest : public ::testing::Test {
 protected:
  void hold(uint64_t task, uint32_t slot, int64_t now_ns = 0, int64_t until_ns = 100) {
    held_.hold({0, task}, slot, {2, 1e9}, now_ns, until_ns);
  }
  HeldTasks held_;
};

TEST_F(HeldTasksTest, OneOfManyIsWokenForRoomAndInTheOrderOfTheQueue) {
  hold(9, kA), hold(4, kA), hold(7, kB);
  EXPECT_THAT(held_.wake_for_room(), IsEmpty());
  held_.room(kA);
  EXPECT_THAT(held_.wake_for_room(), ElementsAre(4));
  EXPECT_FALSE(held_.waits(4));
  EXPECT_TRUE(held_.waits(9));
  EXPECT_TRUE(held_.waits(7));
}

TEST_F(HeldTasksTest, WhoHasTheFirstPlaceIsWokenFirstWhateverItsNumber) {
  held_.hold({3.5, 1}, kA, {2, 1e9}, 0, 100);
  held_.hold({0.5, 2}, kA, {2, 1e9}, 0, 100);
  held_.hold({2.5, 3}, kA, {2, 1e9}, 0, 100);
  held_.room(kA);
  EXPECT_THAT(held_.wake_for_room(), ElementsAre(2));
  held_.hold({0.5, 2}, kA, {8, 1e9}, 0, 100, true);  // too large for what is left
  EXPECT_THAT(held_.wake_for_room(), ElementsAre(3));
  held_.forget(3);
  EXPECT_THAT(held_.wake_for_room(), ElementsAre(1));
}

TEST_F(HeldTasksTest, TheNextIsWokenWhenTheFirstLeftRoom) {
  hold(1, kA), hold(2, kA), hold(3, kA);
  held_.room(kA);
  held_.wake_for_room();
  held_.forget(1);  // placed
  EXPECT_THAT(held_.wake_for_room(), ElementsAre(2));
  hold(2, kA);  // for it there was none left
  EXPECT_THAT(held_.wake_for_room(), IsEmpty());
  EXPECT_TRUE(held_.waits(3));
}

TEST_F(HeldTasksTest, WhatATaskIsTooLargeForIsLeftToOthers) {
  hold(1, kA), hold(2, kA), hold(3, kA);
  held_.room(kA);
  EXPECT_THAT(held_.wake_for_room(), ElementsAre(1));
  held_.hold({0, 1}, kA, {8, 1e9}, 0, 100, true);
  EXPECT_THAT(held_.wake_for_room(), ElementsAre(2));
  held_.hold({0, 2}, kA, {8, 1e9}, 0, 100, true);
  EXPECT_THAT(held_.wake_for_room(), ElementsAre(3));
  held_.hold({0, 3}, kA, {8, 1e9}, 0, 100, true);
  EXPECT_THAT(held_.wake_for_room(), IsEmpty()) << "each is asked once";
  held_.room(kA);
  EXPECT_THAT(held_.wake_for_room(), ElementsAre(1));
}

TEST_F(HeldTasksTest, WhoIsDueIsWoken) {
  EXPECT_EQ(held_.next_due_ns(), INT64_MAX);
  hold(1, kA, 0, 50), hold(2, kB, 0, 30);
  EXPECT_EQ(held_.next_due_ns(), 30);
  held_.wake_due(30);
  EXPECT_FALSE(held_.waits(2));
  EXPECT_TRUE(held_.waits(1));
  EXPECT_EQ(held_.next_due_ns(), 50);
}

TEST_F(HeldTasksTest, AllCanBeWoken) {
  hold(1, kA), hold(2, kB);
  held_.wake_everything();
  EXPECT_FALSE(held_.waits(1) || held_.waits(2));
  EXPECT_EQ(held_.load(kA).units, 0u);
  hold(1, kB);
  EXPECT_TRUE(held_.waits(1));
  EXPECT_EQ(held_.load(kB).units, 2u);
}

TEST_F(HeldTasksTest, SumsNeverFallBelowNothing) {
  held_.hold({0, 1}, kA, {1, 1e24}, 0, 100);
  held_.hold({0, 2}, kA, {1, 1e7}, 0, 100);
  held_.hold({0, 3}, kA, {1, 1e7}, 0, 100);
  held_.forget(1), held_.forget(2);
  EXPECT_GE(held_.load(kA).operations, 0);
}

TEST_F(HeldTasksTest, TheLoadOfANodeIsThatOfThoseThatWaitForIt) {
  hold(1, kA), hold(2, kA), hold(3, kB);
  EXPECT_EQ(held_.load(kA).units, 4u);
  EXPECT_DOUBLE_EQ(held_.load(kA).operations, 2e9);
  held_.wake(1);
  EXPECT_EQ(held_.load(kA).units, 2u) << "what is asked about is not ahead of itself";
  hold(1, kB);
  EXPECT_EQ(held_.load(kB).units, 4u);
  held_.forget(1), held_.forget(2), held_.forget(3);
  EXPECT_EQ(held_.load(kA).units, 0u);
  EXPECT_TRUE(held_.empty());
}

TEST_F(HeldTasksTest, TheFirstHoldSaysForHowLong) {
  hold(1, kA, 10, 60);
  held_.wake(1);
  hold(1, kB, 40, 200);
  EXPECT_EQ(held_.find(1)->since_ns, 10);
  EXPECT_EQ(held_.find(1)->until_ns, 60);
  held_.forget(1);
  hold(1, kA, 300, 400);
  EXPECT_EQ(held_.find(1)->until_ns, 400) << "another attempt";
}

TEST_F(HeldTasksTest, ThoseOfANodeWhoseReasonIsGoneAreWoken) {
  hold(1, kA), hold(2, kA), hold(3, kA), hold(4, kB);
  const auto even = [](uint64_t task) { return task % 2 == 0; };
  EXPECT_THAT(held_.wake_if(kA, even), ElementsAre(2));
  EXPECT_THAT(held_.wake_if(kA, even), IsEmpty()) << "each once";
  EXPECT_THAT(held_.wake_if(99, even), IsEmpty());
  EXPECT_TRUE(held_.waits(1) && held_.waits(3) && held_.waits(4));
  EXPECT_EQ(held_.waiting(), 3u);
  EXPECT_EQ(held_.size(), 4u) << "who is woken is still to be placed";
}

TEST_F(HeldTasksTest, AllAreWokenWhenTheirNodeIsGone) {
  hold(1, kA), hold(2, kA), hold(3, kB);
  EXPECT_THAT(held_.wake_all(kA), ElementsAre(1, 2));
  EXPECT_FALSE(held_.waits(1) || held_.waits(2));
  EXPECT_TRUE(held_.waits(3));
  held_.forget(99);  // never held
  held_.wake(99);
  held_.room(99);
  EXPECT_EQ(held_.size(), 3u);
}

}  // namespace
}  // namespace tierpilot

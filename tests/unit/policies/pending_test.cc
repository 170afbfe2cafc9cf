
#include <gtest/gtest.h>

#include "tests/unit/policies/experiences.h"

namespace tierpilot {
namespace {

using testing_experiences::observation;

TEST(Pending, CompletesWithRewardAndNextRequestInEitherOrder) {
  PendingTable<Observation> table(8);
  table.decided(10, observation(1), 0);
  EXPECT_TRUE(table.outcome(10, 0.5));
  EXPECT_TRUE(table.take_complete().empty()) << "no later request yet";
  table.decided(11, observation(2), 1);
  table.decided(12, observation(3), 2);
  auto complete = table.take_complete();
  ASSERT_EQ(complete.size(), 1u);
  EXPECT_EQ(*complete[0].seen, *observation(1));
  EXPECT_EQ(*complete[0].next, *observation(2));
  EXPECT_DOUBLE_EQ(complete[0].reward, 0.5);

  EXPECT_TRUE(table.outcome(11, 0.25));
  complete = table.take_complete();
  ASSERT_EQ(complete.size(), 1u);
  EXPECT_EQ(complete[0].action, 1u);
  EXPECT_EQ(*complete[0].next, *observation(3));
  EXPECT_EQ(table.size(), 1u);
}

TEST(Pending, AnotherActionReplacesTheFirst) {
  PendingTable<Observation> table(8);
  table.decided(1, observation(1), 0);
  table.decided(1, observation(9), 1);
  table.decided(2, observation(2), 0);
  table.outcome(1, 1.0);
  const auto complete = table.take_complete();
  ASSERT_EQ(complete.size(), 1u);
  EXPECT_EQ(complete[0].action, 1u);
  EXPECT_EQ(*complete[0].seen, *observation(9)) << "with what was seen then";
}

TEST(Pending, IgnoresUnknownRepeatedAndAbandonedIds) {
  PendingTable<Observation> table(8);
  EXPECT_FALSE(table.outcome(5, 1.0));
  table.decided(1, observation(1), 0);
  EXPECT_TRUE(table.outcome(1, 1.0));
  EXPECT_FALSE(table.outcome(1, 2.0));
  EXPECT_TRUE(table.abandon(1));
  EXPECT_FALSE(table.abandon(1));
  table.decided(2, observation(2), 0);
  EXPECT_TRUE(table.take_complete().empty());
}

TEST(Pending, ForgetsTheOldestWhenFull) {
  PendingTable<Observation> table(2);
  for (uint64_t id = 1; id <= 4; ++id) table.decided(id, observation(1), 0);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_FALSE(table.outcome(1, 1.0));
  EXPECT_TRUE(table.outcome(3, 1.0));
}

TEST(Pending, GoesOnAfterARestart) {
  PendingTable<Observation> before(8);
  before.decided(1, observation(1), 0);
  before.decided(2, observation(2), 1);
  before.outcome(2, 0.75);
  PendingTable<Observation> after(8);
  after.restore(before.snapshot());
  EXPECT_EQ(after.size(), 2u);
  after.decided(3, observation(3), 0);
  after.outcome(1, 0.5);
  const auto complete = after.take_complete();
  ASSERT_EQ(complete.size(), 2u);
  EXPECT_DOUBLE_EQ(complete[0].reward, 0.75);
  EXPECT_EQ(*complete[0].next, *observation(3));
  EXPECT_DOUBLE_EQ(complete[1].reward, 0.5);
}

}  // namespace
}  // namespace tierpilot

// Ranks beyond those that a gang asked for are others' as soon as they wait for them.
#include "coordinator/core/elastic/lent_ranks.h"

#include "gang_growth_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using LentRanks = GangGrowthTest;

TEST_F(LentRanks, GiveBackWhatTheyWereLentWhenOthersWaitForIt) {
  join("a");
  join("b");
  const auto id = run_as_wide(4, 1, 4);
  auto large = spec("large");
  large.units = 2;
  const auto waits = submit({large})->first_task;
  take_checkpoint(id, 1, "a");
  for (int i = 0; i < 30 && asked_.empty(); ++i) train(id, 600, 1);
  ASSERT_THAT(asked_, SizeIs(1)) << growth_->reason_of(task(id));
  EXPECT_THAT(asked_[0], HasSubstr("with 2 ranks")) << "no more than they wait for";
  EXPECT_FALSE(rank(id, 0).cancel_asked) << "the checkpoint is an old one";
  take_checkpoint(id, iteration_, "a");
  train(id, 600, 2);
  ASSERT_TRUE(rank(id, 0).cancel_asked);
  end_cancelled(id);
  run(id);
  EXPECT_EQ(width(id), 2u);
  EXPECT_EQ(task(id).restarts, 0u);
  place();
  EXPECT_EQ(task(waits).state, TaskState::kAssigned) << task(waits).reason;
}

TEST_F(LentRanks, GiveBackAlsoWhereNoSecondNodeCanHaveTheCheckpoint) {
  join("a");
  join("b");
  const auto id = run_as_wide(4, 1, 4);
  submit({spec("small")});
  for (int i = 0; i < 30 && asked_.empty(); ++i) train(id, 600, 1);
  ASSERT_THAT(asked_, SizeIs(1));
  take_checkpoint(id, iteration_, "a", 2);
  train(id, 600, 20);
  EXPECT_FALSE(rank(id, 0).cancel_asked) << "it may come yet";
  train(id, 600, 100);
  EXPECT_TRUE(rank(id, 0).cancel_asked) << growth_->reason_of(task(id));
}

// A node gets more than it can run at once, which then is in no queue any more.
TEST_F(LentRanks, GiveBackToTasksThatWaitOnTheirNodes) {
  settings_.backlog_units = 2;
  again();
  join("a");
  const auto id = run_as_wide(2, 1, 2);
  const auto waits = submit({spec("small")})->first_task;
  place();
  ASSERT_EQ(task(waits).state, TaskState::kAssigned);
  train(id, 600, 5);
  EXPECT_THAT(asked_, IsEmpty());
  train(id, 600, 15);
  ASSERT_THAT(asked_, SizeIs(1)) << growth_->reason_of(task(id));
  EXPECT_THAT(asked_[0], HasSubstr("with 1 ranks"));
}

TEST_F(LentRanks, KeepWhatWouldBeOfNoUseToThoseThatWait) {
  join("a");
  const auto id = run_as_wide(2, 1, 2);
  join("b");
  auto there = spec("there");
  there.units = 2;
  there.node = "b";
  const auto first = submit({there})->first_task;
  place();
  ASSERT_EQ(task(first).node, "b");
  submit({there});
  place();
  train(id, 600, 40);
  EXPECT_THAT(asked_, IsEmpty()) << "of node a";
}

TEST_F(LentRanks, OneOfThemGivesBackAndNotAll) {
  for (const auto* name : {"a", "b", "c"}) join(name);
  const auto first = run_as_wide(3, 1, 3), second = run_as_wide(3, 1, 3);
  submit({spec("small")});
  for (int i = 0; i < 30; ++i) {
    train(first, 600, 1);
    train(second, 600, 1);
  }
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(LentRanks, KeepWhatNobodyCouldUse) {
  join("a");
  join("b");
  const auto id = run_as_wide(4, 3, 4);
  auto large = spec("large");
  large.units = 2;
  submit({large});  // its own three ranks are not lent
  train(id, 600, 40);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(LentRanks, GoOnAsTheyAreWhenNobodyWaitsAnyMore) {
  join("a");
  join("b");
  const auto id = run_as_wide(4, 1, 4);
  const auto waits = submit({spec("small")})->first_task;
  for (int i = 0; i < 30 && asked_.empty(); ++i) train(id, 600, 1);
  ASSERT_THAT(asked_, SizeIs(1));
  lifecycle_->cancel(waits, [](Status) {});
  flush();
  take_checkpoint(id, iteration_, "a");
  train(id, 600, 5);
  EXPECT_FALSE(rank(id, 0).cancel_asked);
  EXPECT_EQ(width(id), 4u);
}

TEST_F(LentRanks, LeaveToOthersWhatTheyWaitFor) {
  join("a");
  const auto id = submit_growing(1, 2);
  run(id);
  auto large = spec("large");
  large.units = 2;
  const auto waits = submit({large})->first_task;
  train(id, 600);
  EXPECT_EQ(task(waits).state, TaskState::kQueued);
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_THAT(growth_->reason_of(task(id)), HasSubstr("others"));
}

TEST_F(LentRanks, GiveBackToWhoMayRunOnTheirNodeOnlyThoughAnotherIsIdle) {
  join("a");
  const auto id = run_as_wide(2, 1, 2);
  join("b");
  auto here = spec("here");
  here.node = "a";
  submit({here});
  train(id, 600, 20);
  ASSERT_THAT(asked_, SizeIs(1)) << growth_->reason_of(task(id));
  EXPECT_THAT(asked_[0], HasSubstr("with 1 ranks"));
}

TEST_F(LentRanks, AreNoneWhileATaskWaitsForAnIdleUnitAndAnother) {
  join("a");
  const auto id = submit_growing(1, 2);
  run(id);
  auto here = spec("here");
  here.units = 2;
  here.node = "a";
  submit({here});
  train(id, 600);
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_THAT(growth_->reason_of(task(id)), HasSubstr("others"));
}

TEST_F(LentRanks, AreLentThoughATaskWaitsForAFullNode) {
  join("a");
  auto there = spec("there");
  there.units = 2;
  there.node = "a";
  submit({there});
  place();
  submit({there});
  join("b");
  const auto id = submit_growing(1, 2);
  run(id);
  ASSERT_EQ(rank(id, 0).node, "b");
  train(id, 600);
  EXPECT_THAT(asked_, SizeIs(1)) << growth_->reason_of(task(id));
}

}  // namespace
}  // namespace tierpilot::testing

// Gangs begin again with more ranks where that pays, from a checkpoint, and on idle units only.
#include "coordinator/core/elastic/gang_growth.h"

#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "gang_growth_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(GangGrowthTest, BeginAgainWiderFromTheCheckpointThatTheyWereAskedFor) {
  auto a = join("a"), b = join("b");
  const auto id = submit_growing(1, 4);
  run(id);
  EXPECT_EQ(width(id), 1u);
  train(id, 600);
  ASSERT_THAT(asked_, SizeIs(1)) << growth_->reason_of(task(id));
  EXPECT_THAT(asked_[0], HasSubstr("4 ranks"));
  EXPECT_EQ(task(id).state, TaskState::kRunning) << "it has none yet";
  take_checkpoint(id, iteration_, "a");
  train(id, 600, 2);
  EXPECT_THAT(a->cancelled, SizeIs(1));
  end_cancelled(id);
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_EQ(task(id).restarts, 0u) << "it did not fail";
  run(id);
  EXPECT_EQ(width(id), 4u);
  EXPECT_EQ(a->assignments.back().rank->world_size, 4u);
  // The decision says why.
  const auto shown = records::decisions(store_->reader(), id);
  ASSERT_TRUE(shown);
  ASSERT_THAT(*shown, SizeIs(2));
  EXPECT_THAT(shown->back().reason, HasSubstr("4 ranks: "));
  train(id, 600);
  EXPECT_THAT(asked_, SizeIs(1));
  EXPECT_THAT(growth_->reason_of(task(id)), HasSubstr("as many"));
}

TEST_F(GangGrowthTest, AreNotEndedBeforeASecondNodeHasTheCheckpoint) {
  auto a = join("a");
  join("b");
  const auto id = submit_growing(1, 4);
  run(id);
  const auto iteration = train_until_asked(id);
  take_checkpoint(id, iteration, "a", 2);
  train(id, 600, 20);
  EXPECT_THAT(a->cancelled, IsEmpty());
  copied(id, iteration, "b");
  train(id, 600, 2);
  EXPECT_THAT(a->cancelled, SizeIs(1));
}

TEST_F(GangGrowthTest, DoNotWaitForEverForASecondCopy) {
  auto a = join("a");
  join("b");
  const auto id = submit_growing(1, 4);
  run(id);
  take_checkpoint(id, train_until_asked(id), "a", 2);
  train(id, 600, 150);
  EXPECT_THAT(a->cancelled, IsEmpty());
  EXPECT_THAT(growth_->reason_of(task(id)), HasSubstr("no second node has got a copy"));
}

TEST_F(GangGrowthTest, AreNotEndedForAnOlderCheckpointBecauseTheNewestWent) {
  auto a = join("a");
  join("b");
  const auto id = submit_growing(1, 4);
  run(id);
  train(id, 600, 5);
  take_checkpoint(id, iteration_ - 1, "a");
  take_checkpoint(id, iteration_, "b");
  const auto newest = checkpoint(id, iteration_);
  train_until_asked(id);
  state_->catalog.find(newest)->replicas.clear();
  train(id, 600, 20);
  EXPECT_THAT(a->cancelled, IsEmpty());
}

TEST_F(GangGrowthTest, ThatEndByThemselvesMeanwhileHaveEnded) {
  join("a");
  const auto id = submit_growing(1, 2);
  run(id);
  take_checkpoint(id, train_until_asked(id), "a");
  train(id, 600, 2);
  ASSERT_TRUE(rank(id, 0).cancel_asked);
  end(id, 0, success());
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kSucceeded) << stored(id)->reason;
}

TEST_F(GangGrowthTest, AskForNoMoreRanksThanNodesMayGet) {
  join("a");
  join("b");
  join("c");
  auto wanted = gang(1, 1);
  wanted.gang.max_ranks = 6;
  wanted.gang.ranks_per_node_max = 1;
  const auto id = submit({wanted})->first_task;
  run(id);
  train_until_asked(id);
  EXPECT_THAT(asked_.front(), HasSubstr("with 3 ranks"));
}

TEST_F(GangGrowthTest, HaveTheMostRanksThatTheBoundsOfNodesAllow) {
  join("a");
  join("b");
  join("c");
  auto wanted = gang(2, 1);
  wanted.gang.max_ranks = 6;
  wanted.gang.ranks_per_node_min = wanted.gang.ranks_per_node_max = 2;
  const auto id = submit({wanted})->first_task;
  state_->gangs.want(id, 5, "as before");
  run(id);
  EXPECT_EQ(width(id), 4u);
}

TEST_F(GangGrowthTest, AreAsWideAgainAfterAFailureThatTheCoordinatorsRestartCameBefore) {
  join("a");
  join("b");
  const auto id = run_as_wide(3, 1, 4);
  again();
  pass(60'000);
  membership_->expire();
  flush();
  join("c");
  join("d");
  run(id);
  EXPECT_EQ(width(id), 3u);
}

TEST_F(GangGrowthTest, EndWithTheRanksTheyHaveAndTheOthersEndWithThem) {
  join("a");
  const auto id = submit_growing(1, 2);
  run(id);
  end(id, 0, success());
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kSucceeded);
  EXPECT_EQ(stored(id + 1)->state, TaskState::kSucceeded);
  EXPECT_EQ(stored(id + 2)->state, TaskState::kCancelled) << "it never had it";
  EXPECT_EQ(state_->registry.find("a")->assigned_units, 0u);
}

TEST_F(GangGrowthTest, ThatAreNearlyDoneGoOnAsTheyAre) {
  join("a");
  join("b");
  const auto id = submit_growing(1, 4);
  run(id);
  train(id, 30);
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_THAT(growth_->reason_of(task(id)), HasSubstr("would not pay"));
}

TEST_F(GangGrowthTest, WithoutACheckpointGoOnAndAreNotAskedAgainAtOnce) {
  join("a");
  const auto id = submit_growing(1, 2);
  run(id);
  train(id, 600, 100);
  EXPECT_THAT(asked_, SizeIs(1));
  EXPECT_EQ(task(id).attempt, 1u);
  EXPECT_THAT(growth_->reason_of(task(id)), HasSubstr("took none"));
}

TEST_F(GangGrowthTest, HaveAsManyAsThereIsRoomForWhenANodeIsLost) {
  join("a");
  join("b");
  const auto id = run_as_wide(4, 1, 4);
  pass(60'000);
  membership_->expire();  // neither has said a word
  flush();
  auto c = join("c");
  run(id);
  EXPECT_EQ(width(id), 2u);
  EXPECT_EQ(c->assignments.back().rank->world_size, 2u);
}

TEST_F(GangGrowthTest, AreAsWideAsTheyWereAfterTheCoordinatorBeganAnew) {
  join("a");
  join("b");
  const auto id = run_as_wide(3, 1, 4);
  std::map<std::string, std::set<AttemptId>> live;
  for (uint32_t number : {0u, 1u, 2u}) live[rank(id, number).node].insert(attempt(id, number));
  again();
  EXPECT_EQ(width(id), 3u);
  for (const auto& [node, attempts] : live) join(node, 7, attempts);
  for (uint32_t number : {0u, 1u, 2u}) end(id, number, success());
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kSucceeded);
}

TEST_F(GangGrowthTest, MayNotHaveFewerThanTheyBeginWith) {
  join("a");
  auto wanted = gang(3);
  wanted.gang.max_ranks = 2;
  const auto refused = submit({wanted});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("less than those it begins with, 3"));
}

}  // namespace
}  // namespace tierpilot::testing

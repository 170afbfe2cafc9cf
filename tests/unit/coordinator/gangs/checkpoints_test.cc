// Checkpoints of gangs: which count, which are kept, and what the job is told.
#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "tests/unit/coordinator/gangs/checkpoints_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

TEST(SurplusCheckpoints, LeaveTheNewestSafeTheNextAndTheNewest) {
  std::vector<CheckpointName> all;
  for (uint64_t i = 1; i <= 6; ++i) all.push_back({7, 1, i});
  const auto iterations = [](const std::vector<CheckpointName>& names) {
    std::vector<uint64_t> list;
    for (const auto& name : names) list.push_back(name.iteration);
    return list;
  };
  // 4 is on its way to the second node: were it dropped for 5 and 6, none would become safe.
  EXPECT_THAT(iterations(surplus_checkpoints(all, {{7, 1, 3}}, 3)), ElementsAre(1, 2, 5));
  EXPECT_THAT(iterations(surplus_checkpoints(all, {}, 3)), ElementsAre(2, 3, 4));
  EXPECT_THAT(iterations(surplus_checkpoints(all, {{7, 1, 6}}, 3)), ElementsAre(1, 2, 3));
  EXPECT_THAT(iterations(surplus_checkpoints(all, {{7, 1, 3}}, 1)), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(surplus_checkpoints({}, {}, 3), IsEmpty());
}

TEST_F(CheckpointsTest, OneCountsOnceASecondNodeKeepsItToo) {
  run_gang();
  taken("n", 10);
  auto shown = checkpoints().of(id);
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].wanted, 2u);
  EXPECT_FALSE(shown[0].is_safe());
  tick();
  EXPECT_THAT(told<CheckpointSafe>(), IsEmpty());
  tells("m", 10, true);
  tick();
  EXPECT_TRUE(checkpoints().of(id)[0].is_safe());
  ASSERT_EQ(told<CheckpointSafe>().size(), 1u);
  EXPECT_EQ(told<CheckpointSafe>()[0].iteration, 10u);
  EXPECT_EQ(told<CheckpointSafe>()[0].copies, 2u);
  tick();
  EXPECT_EQ(told<CheckpointSafe>().size(), 1u) << "once";
  EXPECT_THAT(m->told, IsEmpty()) << "rank 0 is told";
}

TEST_F(CheckpointsTest, WhatItsNodeTellsWhileItIsWrittenDownCounts) {
  run_gang();
  tells("n", 10, true);
  checkpoints().found("n", dataset(10), replica());
  auto in_memory = replica();
  in_memory.in_fast = true;  // it was promoted at once
  membership_->replica_changed("n", dataset(10), in_memory);
  flush();
  EXPECT_TRUE(state_->catalog.find(dataset(10))->replicas.at("n").in_fast);
}

TEST_F(CheckpointsTest, OnASingleNodeOneCountsAtOnce) {
  n = join("n");
  auto task = spec("alone");
  id = submit({task})->first_task;
  const auto attempt = assign(id, "n");
  lifecycle_->started("n", attempt, 1000);
  taken("n", 10);
  tick();
  EXPECT_TRUE(checkpoints().of(id)[0].is_safe());
  ASSERT_EQ(told<CheckpointSafe>().size(), 1u);
  EXPECT_EQ(told<CheckpointSafe>()[0].copies, 1u);
}

TEST_F(CheckpointsTest, NoMoreAreKeptThanSaid) {
  run_gang();
  for (uint64_t i = 1; i <= 6; ++i) {
    taken("n", i);
    if (i <= 2) tells("m", i, true);
  }
  tick();
  EXPECT_THAT(kept(), ElementsAre(6, 3, 2)) << "newest, next to become safe, newest safe";
  EXPECT_FALSE(n->dropped.empty());
}

// It would count as safe with one copy.
TEST_F(CheckpointsTest, AfterARestartOneIsToBeOnASecondNodeAlsoWhereOnlyOneHasJoined) {
  run_gang();
  checkpoints_.reset();
  restart();
  n = join("n", 7, {rank(0)});
  taken("n", 10);
  ASSERT_EQ(checkpoints().of(id).size(), 1u);
  EXPECT_EQ(checkpoints().of(id)[0].wanted, 2u);
}

TEST_F(CheckpointsTest, TheIntervalFollowsFromCostAndFailures) {
  run_gang();
  taken("n", 10);
  checkpoints().measured("n", rank(0), dataset(10), {2'000'000'000, 1'000'000'000});
  ASSERT_EQ(told<CheckpointEvery>().size(), 1u);
  const auto first = told<CheckpointEvery>()[0];
  EXPECT_DOUBLE_EQ(first.cost_s, 2);
  EXPECT_GT(first.failures_per_h, 0);
  EXPECT_LT(first.interval_s, 24 * 3600) << "units without failures are not taken to be perfect";
  // Young: the square root of twice the cost over the rate.
  EXPECT_NEAR(first.interval_s, std::sqrt(2 * 2 * 3600 / first.failures_per_h), 1e-6);
  checkpoints().measured("n", rank(0), dataset(10), {9'000'000'000, 0});
  EXPECT_EQ(told<CheckpointEvery>().size(), 1u) << "a repeated event is heard once";
  // Units that failed: to be taken more often.
  for (int i = 0; i < 20; ++i)
    state_->units.failed({clock_.wall_ms(), cpu_unit_id("n", 0), "signal 9", id});
  taken("n", 20);
  checkpoints().measured("n", rank(0), dataset(20), {2'000'000'000, 0});
  ASSERT_EQ(told<CheckpointEvery>().size(), 2u);
  EXPECT_LT(told<CheckpointEvery>()[1].interval_s, first.interval_s);
  EXPECT_EQ(checkpoints().totals(id)->taken, 2u);
}

TEST_F(CheckpointsTest, OnlyItsOwnNodesTellOfTheOneThatRuns) {
  run_gang();
  join("stranger");
  checkpoints().found("stranger", dataset(10), replica());
  flush();
  EXPECT_EQ(state_->catalog.find(dataset(10)), nullptr);
  for (const uint32_t try_to_come : {2U, 4'294'967'295U}) {
    const auto name = to_string({id, try_to_come, 10});
    checkpoints().found("n", name, replica());
    flush();
    EXPECT_EQ(state_->catalog.find(name), nullptr);
  }
  checkpoints().measured("stranger", rank(0), dataset(20), {2'000'000'000, 0});
  EXPECT_EQ(checkpoints().totals(id), nullptr);
  checkpoints().found("m", dataset(10), replica());
  flush();
  EXPECT_NE(state_->catalog.find(dataset(10)), nullptr);
}

// It was asked to copy one that has become surplus since, and nobody else will tell it to drop
// that.
TEST_F(CheckpointsTest, ACopyThatIsMadeTooLateGoesUnlessNothingNewerIsSafe) {
  run_gang();
  const auto second = join("second");
  for (uint64_t i = 1; i <= 6; ++i) taken("n", i);
  tick();
  ASSERT_THAT(kept(), ElementsAre(6, 5, 1));
  checkpoints().found("second", dataset(3), replica());
  flush();
  EXPECT_THAT(kept(), ElementsAre(6, 5, 3, 1)) << "its own node may be lost before it has copied";
  tells("m", 5, true);
  second->dropped.clear();
  checkpoints().found("second", dataset(2), replica());
  flush();
  EXPECT_THAT(second->dropped, ElementsAre(std::pair(dataset(2), UINT64_MAX)));
  EXPECT_EQ(state_->catalog.find(dataset(2)), nullptr);
}

TEST_F(CheckpointsTest, OneThatAJobWasToldIsSafeStaysUntilALaterOneIsThoughANodeOfItsIsLost) {
  run_gang();
  const auto third = join("third");
  taken("n", 1);
  taken("n", 2);
  tells("third", 2, true);
  tick();
  ASSERT_EQ(told<CheckpointSafe>().size(), 1u);
  lifecycle_->give_up(*state_->registry.find("third"), "its lease has ended");
  for (uint64_t i = 3; i <= 6; ++i) taken("n", i);
  tick();
  EXPECT_THAT(kept(), ElementsAre(6, 5, 2, 1));
  tells("m", 6, true);
  taken("n", 7);
  tick();
  tick();  // the job was told of the later one
  EXPECT_THAT(kept(), ElementsAre(7, 6, 5));
}

// The one that a node which has not joined yet has too would seem to be on one node only.
TEST_F(CheckpointsTest, AfterARestartNoneIsSurplusBeforeAllNodesHaveTold) {
  run_gang();
  for (uint64_t i = 1; i <= 5; ++i) {
    taken("n", i);
    if (i == 2) tells("m", i, true);
  }
  checkpoints_.reset();
  restart();
  n = join("n", 7, {rank(0)});
  for (uint64_t i = 1; i <= 5; ++i) tells("n", i, true);
  tick();
  EXPECT_THAT(kept(), ElementsAre(5, 4, 3, 2, 1));
  m = join("m", 7, {rank(1)});
  tells("m", 2, true);
  tick();
  EXPECT_THAT(kept(), ElementsAre(5, 3, 2));
}

// One that keeps it is away then.
TEST_F(CheckpointsTest, WhatAJobWasToldIsSafeStaysAfterARestartUntilALaterOneIs) {
  run_gang();
  taken("n", 1);
  taken("n", 2);
  tells("m", 2, true);
  tick();
  ASSERT_EQ(told<CheckpointSafe>().size(), 1u);
  checkpoints_.reset();
  restart();
  m = join("m", 7, {rank(1)});
  tells("m", 2, true);
  join("third");
  clock_.advance_ns(state_->joined_by_ns);
  for (uint64_t i = 3; i <= 8; ++i) taken("m", i);
  tick();
  EXPECT_THAT(kept(), IsSupersetOf({8u, 7u, 2u}));
  tells("third", 8, true);
  taken("m", 9);
  tick();
  tick();
  EXPECT_THAT(kept(), ElementsAre(9, 8, 7));
}

TEST_F(CheckpointsTest, AJobIsToldOfASafeOneOnceThatIsWrittenDown) {
  run_gang();
  taken("n", 10);
  tells("m", 10, true);
  clock_.advance_ns(1'000'000'001);
  checkpoints().tick();
  EXPECT_THAT(told<CheckpointSafe>(), IsEmpty());
  flush();
  EXPECT_EQ(told<CheckpointSafe>().size(), 1u);
  checkpoints_.reset();
  tick();
  EXPECT_EQ(told<CheckpointSafe>().size(), 1u) << "another coordinator knows that it was told";
}

// Their node may never be back.
TEST_F(CheckpointsTest, OnesThatNobodyCanBeAskedForAreNoReasonToLetGoOfOneThatCanBeHad) {
  run_gang();
  join("third");
  taken("n", 1);
  tells("third", 1, true);
  for (uint64_t i = 2; i <= 5; ++i) taken("n", i);
  lifecycle_->give_up(*state_->registry.find("n"), "its lease has ended");
  tick();
  EXPECT_EQ(newest_checkpoint(*state_, id), dataset(1));
  EXPECT_THAT(kept(), ElementsAre(5, 4, 3, 2, 1));
}

// Its disk was lost, and who took its place has told what there is.
TEST_F(CheckpointsTest, OneIsNotHadFromADaemonThatIsGoneWhenItIsWrittenDown) {
  run_gang();
  checkpoints().found("n", dataset(10), replica());
  auto anew = facts("n", 8);
  anew.predecessors = {7};
  ASSERT_TRUE(membership_->join(anew, std::make_shared<FakeNode>(), {}, {}));
  flush();
  EXPECT_THAT(kept(), ElementsAre(10)) << "another node may have a copy";
  EXPECT_EQ(newest_checkpoint(*state_, id), "");
}

// It would begin from nothing.
TEST_F(CheckpointsTest, AGangWhoseCheckpointGoesBeforeItIsSentIsPlacedAgain) {
  run_gang();
  taken("n", 10);
  ASSERT_TRUE(exit("n", rank(0), failure(1)));
  ASSERT_TRUE(exit("m", rank(1), failure(1)));
  n->assignments.clear();
  GangPlan plan;
  plan.ranks = {{"n", 0, 1, 0, {0}, {}}, {"m", 0, 1, 1, {0}, {}}};
  gangs_->place(*state_->tasks.find(id), plan);
  state_->catalog.begin_removal(dataset(10));
  flush();
  EXPECT_THAT(n->assignments, IsEmpty());
  EXPECT_EQ(state_->tasks.find(id)->state, TaskState::kQueued);
}

// Its node was away when the others were told.
TEST_F(CheckpointsTest, WhatATryHasReadOfOneThatIsGoneGoes) {
  run_gang();
  taken("n", 10);
  ReplicaState read{1, 4096, true, false, false, {0, 9}, false};
  checkpoints().found("m", dataset(10), read);
  EXPECT_THAT(m->dropped, IsEmpty());
  checkpoints().found("m", dataset(5), read);
  EXPECT_THAT(m->dropped, ElementsAre(std::pair(dataset(5), UINT64_MAX)));
}

// What the disk would not take back of a later try's placement.
TEST_F(CheckpointsTest, OfATaskThatWaitsAnyNodeTells) {
  run_gang();
  ASSERT_TRUE(exit("n", rank(0), failure(1)));
  ASSERT_TRUE(exit("m", rank(1), failure(1)));
  for (const uint64_t rank : state_->tasks.ranks_of(id)) state_->tasks.find(rank)->node = "other";
  checkpoints().found("n", dataset(10), replica());
  flush();
  EXPECT_THAT(kept(), ElementsAre(10));
}

TEST_F(CheckpointsTest, NobodyElseMakesADatasetOfSuchAName) {
  n = join("n");
  std::optional<Result<Dataset>> made;
  datasets_->add("", "checkpoint.7.1.10", ZeroSource{4096}, "n",
                 [&](auto told) { made = std::move(told); });
  ASSERT_TRUE(made);
  EXPECT_FALSE(*made);
}

TEST_F(CheckpointsTest, ANodeThatIsDrainedAsksItsJobs) {
  run_gang();
  checkpoints().ask_all_on("m", "node 'm' is drained");
  ASSERT_EQ(told<CheckpointNow>().size(), 1u);
  EXPECT_EQ(told<CheckpointNow>()[0].reason, "node 'm' is drained");
}

// A node that is away for good would be owed one for every checkpoint that any job ever took.
TEST_F(CheckpointsTest, NothingIsOwedToNodesThatAreAway) {
  run_gang();
  join("away", 9);
  membership_->disconnected(tickets_["away"]);
  for (uint64_t i = 1; i <= 6; ++i) {
    taken("n", i);
    tells("m", i, true);
    tick();
  }
  EXPECT_FALSE(n->dropped.empty());
  EXPECT_TRUE(state_->owed_drops.empty());
  const auto owed = records::owed_drops(store_->reader());
  ASSERT_TRUE(owed);
  EXPECT_THAT(*owed, IsEmpty());
}

}  // namespace
}  // namespace tierpilot::testing

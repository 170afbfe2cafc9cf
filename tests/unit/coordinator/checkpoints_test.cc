// Checkpoints of gangs: which count, which are kept, which one the next try begins from, and what
// the job is told.
#include "coordinator/core/gangs/checkpoints.h"

#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

// A gang of two ranks that runs on `n` and `m`.
class CheckpointsTest : public CoreTest {
 protected:
  void run_gang() {
    n = join("n");
    m = join("m");
    auto gang = spec("train");
    gang.gang.ranks = 2;
    gang.gang.max_restarts = 5;
    id = submit({gang})->first_task;
    place();
  }
  void place() {
    GangPlan plan;
    plan.ranks = {{"n", 0, 1, 0, {0}, {}}, {"m", 0, 1, 1, {0}, {}}};
    gangs_->place(*state_->tasks.find(id), plan);
    flush();
    for (const uint64_t rank : state_->tasks.ranks_of(id)) {
      const auto& task = *state_->tasks.find(rank);
      lifecycle_->started(task.node, {rank, task.attempt}, 1000, {0});
    }
    flush();
  }
  Checkpoints& checkpoints() {
    if (!checkpoints_) checkpoints_ = std::make_unique<Checkpoints>(*state_, *datasets_);
    return *checkpoints_;
  }
  CheckpointName name(uint64_t iteration) { return {id, 1, iteration}; }
  std::string dataset(uint64_t iteration) { return to_string(name(iteration)); }
  static ReplicaState replica(bool there = true) {
    return {1, 4096, false, there, there, {0, 9}, false};
  }
  // As its node reports it.
  void taken(const std::string& node, uint64_t iteration) {
    tells(node, iteration, true);
    checkpoints().found(node, dataset(iteration), replica());
    flush();
  }
  void tells(const std::string& node, uint64_t iteration, bool has) {
    membership_->replica_changed(node, dataset(iteration), replica(has));
  }
  void tick() {
    clock_.advance_ns(1'000'000'001);
    checkpoints().tick();
    flush();
  }
  std::vector<uint64_t> kept() {
    std::vector<uint64_t> iterations;
    for (const auto& shown : checkpoints().of(id)) iterations.push_back(shown.name.iteration);
    return iterations;
  }
  template <class Advice>
  std::vector<Advice> told() {
    std::vector<Advice> all;
    for (const auto& [attempt, advice] : n->told)
      if (const auto* one = std::get_if<Advice>(&advice)) all.push_back(*one);
    return all;
  }
  AttemptId rank(uint32_t number) { return {state_->tasks.ranks_of(id)[number], 1}; }
  void end_gang() {
    for (uint32_t number : {0, 1})
      EXPECT_TRUE(exit(number == 0 ? "n" : "m", rank(number), success()));
    flush();
  }

  uint64_t id = 0;
  std::shared_ptr<FakeNode> n, m;
  std::unique_ptr<Checkpoints> checkpoints_;
};

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

TEST_F(CheckpointsTest, ATryBeginsFromTheNewestThatCanBeHad) {
  run_gang();
  EXPECT_EQ(newest_checkpoint(*state_, id), "");
  taken("n", 10);
  tells("m", 10, true);
  taken("n", 20);
  EXPECT_EQ(newest_checkpoint(*state_, id), dataset(20));
  // Its node is lost before the copy was made.
  clock_.advance_ns(3600'000'000'000);
  membership_->expire();
  m = join("m", 8);
  tells("m", 10, true);
  EXPECT_EQ(newest_checkpoint(*state_, id), dataset(10));
}

TEST_F(CheckpointsTest, AllRanksOfATryBeginFromTheSame) {
  run_gang();
  taken("n", 10);
  tells("m", 10, true);
  ASSERT_TRUE(exit("n", rank(0), failure(1)));
  ASSERT_TRUE(exit("m", rank(1), failure(1)));
  ASSERT_EQ(state_->tasks.find(id)->state, TaskState::kQueued);
  n->assignments.clear();
  m->assignments.clear();
  place();
  for (const auto* node : {n.get(), m.get()}) {
    ASSERT_EQ(node->assignments.size(), 1u);
    const auto& needs = node->assignments[0].datasets;
    ASSERT_EQ(needs.size(), 1u);
    EXPECT_EQ(needs[0].dataset, dataset(10));
    EXPECT_TRUE(needs[0].is_checkpoint);
    EXPECT_EQ(needs[0].digest, (ContentDigest{0, 9}));
    EXPECT_FALSE(needs[0].sources.empty());
  }
}

TEST_F(CheckpointsTest, TheyOutliveTheCoordinator) {
  run_gang();
  taken("n", 10);
  checkpoints_.reset();
  restart();
  n = join("n", 7, {rank(0)});
  tells("n", 10, true);
  EXPECT_EQ(newest_checkpoint(*state_, id), dataset(10));
}

TEST_F(CheckpointsTest, OneThatTheCoordinatorNeverHeardOfIsTakenUpWhenItsNodeJoins) {
  run_gang();
  checkpoints().found("n", dataset(10), replica());
  flush();
  EXPECT_THAT(kept(), ElementsAre(10));
}

TEST_F(CheckpointsTest, OfAJobThatHasEndedTheLastStaysAndItsUserMayRemoveIt) {
  run_gang();
  for (uint64_t i : {10, 20, 30}) {
    taken("n", i);
    tells("m", i, true);
  }
  tick();
  std::optional<Status> removed;
  datasets_->remove(dataset(30), [&](Status status) { removed = status; });
  ASSERT_TRUE(removed);
  EXPECT_FALSE(*removed) << "its job may need it";
  end_gang();
  tick();
  EXPECT_THAT(kept(), ElementsAre(30));
  // What its nodes still hold of others goes as they tell of it.
  m->dropped.clear();
  checkpoints().found("m", dataset(5), replica());
  EXPECT_THAT(m->dropped, ElementsAre(std::pair(dataset(5), UINT64_MAX)));
  removed.reset();
  datasets_->remove(dataset(30), [&](Status status) { removed = status; });
  flush();
  ASSERT_TRUE(removed);
  EXPECT_TRUE(*removed);
}

// A power cut would undo the end, and the job would go on from nothing.
TEST_F(CheckpointsTest, OneIsNotDroppedBeforeTheEndOfItsJobIsOnDisk) {
  run_gang();
  ASSERT_TRUE(exit("n", rank(0), failure(1)));
  ASSERT_TRUE(exit("m", rank(1), failure(1)));
  ASSERT_EQ(state_->tasks.find(id)->state, TaskState::kQueued);
  flush();
  hold_disk();
  lifecycle_->cancel(id, nullptr);
  ASSERT_EQ(state_->tasks.find(id)->state, TaskState::kCancelled);
  checkpoints().found("n", dataset(10), replica());
  clock_.advance_ns(1'000'000'001);
  checkpoints().tick();
  EXPECT_THAT(n->dropped, IsEmpty());
  release_disk();
  // Its node tells of it only when it registers.
  tick();
  EXPECT_THAT(n->dropped, ElementsAre(std::pair(dataset(10), UINT64_MAX)));
  tick();
  EXPECT_EQ(n->dropped.size(), 1u) << "once";
  EXPECT_THAT(kept(), IsEmpty());
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

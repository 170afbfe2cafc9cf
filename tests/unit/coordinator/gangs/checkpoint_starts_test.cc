// Which checkpoint the next try of a gang begins from, and what it waits for before.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/gangs/checkpoints_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

// Its job would begin from less, or anew, for a connection that broke for a moment.
TEST_F(CheckpointsTest, ATryWaitsForANodeThatMayBeBackWithANewerOneWithinItsLease) {
  run_gang();
  taken("n", 10);
  tells("m", 10, true);
  taken("n", 20);
  EXPECT_EQ(awaited_checkpoint(*state_, id), "");
  membership_->disconnected(tickets_["n"]);
  EXPECT_THAT(awaited_checkpoint(*state_, id), HasSubstr("node 'n'"));
  EXPECT_EQ(state_->blocked_by(*state_->tasks.find(id)), awaited_checkpoint(*state_, id));
  n = join("n", 7, {rank(0)});
  tells("n", 20, true);
  EXPECT_EQ(awaited_checkpoint(*state_, id), "");
  membership_->disconnected(tickets_["n"]);
  clock_.advance_ns(3600'000'000'000);
  membership_->expire();
  EXPECT_EQ(awaited_checkpoint(*state_, id), "") << "its lease has ended";
}

TEST_F(CheckpointsTest, AfterARestartATryWaitsForALeasesTimeForNodesThatMayHaveOne) {
  run_gang();
  taken("n", 10);
  checkpoints_.reset();
  restart();
  m = join("m", 7, {rank(1)});
  EXPECT_THAT(awaited_checkpoint(*state_, id), HasSubstr("node 'n'"));
  clock_.advance_ns(state_->settings.lease_ms * 1'000'000);
  membership_->expire();
  EXPECT_EQ(awaited_checkpoint(*state_, id), "");
}

TEST_F(CheckpointsTest, ATryWaitsForOneThatIsOnItsWayToTheDisk) {
  run_gang();
  tells("n", 10, true);
  checkpoints().found("n", dataset(10), replica());
  EXPECT_NE(awaited_checkpoint(*state_, id), "");
  flush();
  EXPECT_EQ(awaited_checkpoint(*state_, id), "");
}

// Its node has told of it, and does not again.
TEST_F(CheckpointsTest, OneThatTheDiskDidNotTakeIsWrittenDownOnceItDoes) {
  run_gang();
  const auto refuse = [&](const char* sql) {
    store_->write([sql](Db& db) { return db.execute(sql); }, nullptr);
    flush();
  };
  refuse(
      "CREATE TRIGGER full BEFORE INSERT ON datasets BEGIN SELECT RAISE(ABORT, 'disk is full'); "
      "END;");
  taken("n", 10);
  taken("n", 20);
  tick();
  EXPECT_THAT(kept(), IsEmpty());
  EXPECT_NE(awaited_checkpoint(*state_, id), "");
  tells("n", 20, false);
  checkpoints().found("n", dataset(20), replica(false));
  refuse("DROP TRIGGER full;");
  tick();
  EXPECT_THAT(kept(), ElementsAre(10)) << "the other one has gone meanwhile";
  EXPECT_EQ(awaited_checkpoint(*state_, id), "");
}

TEST_F(CheckpointsTest, SoIsOneThatAnotherDaemonOfItsNodeHasToldOfMeanwhile) {
  run_gang();
  store_->write(
      [](Db& db) {
        return db.execute(
            "CREATE TRIGGER full BEFORE INSERT ON datasets BEGIN SELECT RAISE(ABORT, 'full'); "
            "END;");
      },
      nullptr);
  flush();
  taken("n", 10);
  auto anew = facts("n", 8);
  anew.predecessors = {7};
  membership_->on_replica = [this](const auto& node, const auto& dataset, const auto& state) {
    checkpoints().found(node, dataset, state);
  };
  ASSERT_TRUE(
      membership_->join(anew, std::make_shared<FakeNode>(), {{dataset(10), replica()}}, {}));
  store_->write([](Db& db) { return db.execute("DROP TRIGGER full"); }, nullptr);
  flush();
  tick();
  EXPECT_EQ(newest_checkpoint(*state_, id), dataset(10));
}

// A daemon that starts anew tells what it has as it joins, and then its tasks begin again.
TEST_F(CheckpointsTest, OneIsKnownBeforeTheTasksOfItsNodeAreQueuedAgain) {
  run_gang();
  membership_->on_replica = [this](const auto& node, const auto& dataset, const auto& state) {
    checkpoints().found(node, dataset, state);
    EXPECT_NE(state_->tasks.find(id)->state, TaskState::kQueued);
  };
  n = std::make_shared<FakeNode>();
  ASSERT_TRUE(membership_->join(facts("n"), n, {{dataset(10), replica()}}, {}));
  EXPECT_NE(awaited_checkpoint(*state_, id), "");
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

}  // namespace
}  // namespace tierpilot::testing

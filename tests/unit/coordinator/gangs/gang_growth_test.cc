// Gangs begin again with more ranks where that pays, from a checkpoint, and on idle units only.
#include "coordinator/core/elastic/gang_growth.h"

#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "gang_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GangGrowthTest : public Gangs {
 protected:
  GangGrowthTest() {
    settings_.elastic_period_ms = 1000;
    settings_.elastic_horizon_ms = 60'000;
    settings_.gang_costs = {.checkpoint_h = 1.0 / 3600, .restart_h = 5.0 / 3600};
    again();
    growth_ = std::make_unique<GangGrowth>(
        *state_,
        GangGrowth::Hooks{[this](uint64_t, const std::string& why) { asked_.push_back(why); },
                          [this](Task& gang, uint32_t ranks, const std::string& why) {
                            gangs_->begin_again(gang, ranks, why);
                          }});
  }
  uint64_t submit_growing(uint32_t ranks, uint32_t most) {
    auto wanted = gang(ranks, 1);
    wanted.gang.max_ranks = most;
    return submit({wanted})->first_task;
  }
  // It runs as wide as it was before.
  uint64_t run_as_wide(uint32_t ranks, uint32_t own, uint32_t most) {
    const auto id = submit_growing(own, most);
    state_->gangs.want(id, ranks, "as before");
    run(id);
    EXPECT_EQ(width(id), ranks);
    return id;
  }
  size_t width(uint64_t id) { return state_->tasks.ranks_tried(task(id)).size(); }
  void run(uint64_t id) {
    place();
    for (const uint64_t rank_id : std::vector(state_->tasks.ranks_of(id))) {
      const auto& rank = task(rank_id);
      if (rank.state != TaskState::kAssigned) continue;
      lifecycle_->started(rank.node, {rank_id, rank.attempt}, 1000, {rank.rank->rank % 2});
    }
    flush();
    ASSERT_EQ(task(id).state, TaskState::kRunning);
  }
  // Iterations a second, each of which takes little from a large loss, or from a small one.
  void train(uint64_t id, double half_life, int seconds = 40) {
    for (int i = 0; i < seconds; ++i) {
      clock_.advance_ns(1'100'000'000);
      iteration_ += 10 * width(id);
      JobPoint point{.attempt = task(id).attempt,
                     .at_ms = clock_.wall_ms(),
                     .iteration = iteration_,
                     .loss = {1 + std::exp2(-static_cast<double>(iteration_) / half_life), {}},
                     .measures = {}};
      growth_->reported(rank(id, 0), point);
      growth_->tick();
      flush();
    }
  }
  std::string checkpoint(uint64_t id, uint64_t iteration) {
    return to_string(CheckpointName{id, task(id).attempt, iteration});
  }
  // That so many nodes are to keep, of which this one does.
  void take_checkpoint(uint64_t id, uint64_t iteration, const std::string& node,
                       uint32_t copies = 1) {
    state_->catalog.put(
        {.name = checkpoint(id, iteration), .bytes = 10, .home = node, .replicas = copies});
    copied(id, iteration, node);
  }
  void copied(uint64_t id, uint64_t iteration, const std::string& node) {
    state_->catalog.find(checkpoint(id, iteration))->replicas[node] = {
        .version = 1, .bytes = 10, .in_slow = true, .home = true};
  }
  // Until it was asked for a checkpoint; the iteration that it has come to.
  uint64_t train_until_asked(uint64_t id) {
    for (int i = 0; i < 60 && asked_.empty(); ++i) train(id, 600, 1);
    EXPECT_THAT(asked_, SizeIs(1)) << growth_->reason_of(task(id));
    return iteration_;
  }

  std::vector<std::string> asked_;
  std::unique_ptr<GangGrowth> growth_;
  uint64_t iteration_ = 0;
};

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

TEST_F(GangGrowthTest, LeaveToOthersWhatTheyWaitFor) {
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

TEST_F(GangGrowthTest, WithoutACheckpointGoOnAndAreNotAskedAgainAtOnce) {
  join("a");
  const auto id = submit_growing(1, 2);
  run(id);
  train(id, 600, 100);
  EXPECT_THAT(asked_, SizeIs(1));
  EXPECT_EQ(task(id).attempt, 1u);
  EXPECT_THAT(growth_->reason_of(task(id)), HasSubstr("took none"));
}

TEST_F(GangGrowthTest, GiveBackWhatTheyWereLentWhenOthersWaitForIt) {
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

TEST_F(GangGrowthTest, GiveBackAlsoWhereNoSecondNodeCanHaveTheCheckpoint) {
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
TEST_F(GangGrowthTest, GiveBackToTasksThatWaitOnTheirNodes) {
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

TEST_F(GangGrowthTest, KeepWhatWouldBeOfNoUseToThoseThatWait) {
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

TEST_F(GangGrowthTest, OneOfThemGivesBackAndNotAll) {
  for (const auto* name : {"a", "b", "c"}) join(name);
  const auto first = run_as_wide(3, 1, 3), second = run_as_wide(3, 1, 3);
  submit({spec("small")});
  for (int i = 0; i < 30; ++i) {
    train(first, 600, 1);
    train(second, 600, 1);
  }
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(GangGrowthTest, KeepWhatNobodyCouldUse) {
  join("a");
  join("b");
  const auto id = run_as_wide(4, 3, 4);
  auto large = spec("large");
  large.units = 2;
  submit({large});  // its own three ranks are not lent
  train(id, 600, 40);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(GangGrowthTest, GoOnAsTheyAreWhenNobodyWaitsAnyMore) {
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

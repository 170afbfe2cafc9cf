// Ranks of a gang are placed, started and ended together, whatever happens to one of them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "coordinator/store/records.h"
#include "gang_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Gangs, ArePlacedOnlyWhenAllRanksHaveRoom) {
  auto a = join("a");
  join("empty", 9);
  membership_->disconnected(tickets_["empty"]);  // known, and not there now
  const auto id = submit_gang(3);
  place();
  EXPECT_THAT(a->started, IsEmpty());
  EXPECT_THAT(task(id).reason, HasSubstr("3 ranks"));
  auto b = join("b");
  place();
  EXPECT_EQ(a->started.size() + b->started.size(), 3u);
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
}

TEST_F(Gangs, KeepAwayFromNodesThatWouldStartARankAsATaskOfItsOwn) {
  auto old = join("old");
  join("away", 9);
  membership_->disconnected(tickets_["away"]);  // known, and not there now
  state_->registry.find("old")->facts.runs_gangs = false;
  const auto id = submit_gang(2);
  place();
  EXPECT_THAT(old->started, IsEmpty());
  EXPECT_THAT(task(id).reason, HasSubstr("update"));
  auto b = join("b");
  place();
  EXPECT_THAT(old->started, IsEmpty());
  EXPECT_EQ(b->started.size(), 2u);
}

TEST_F(Gangs, TellEveryRankItsPlaceAndWhereAllMeet) {
  std::vector<std::shared_ptr<FakeNode>> nodes{join("a"), join("b")};
  const auto id = submit_gang(4);
  place();
  std::set<uint32_t> ranks;
  for (const auto& node : nodes) {
    ASSERT_THAT(node->assignments, SizeIs(2));
    for (uint32_t local = 0; local < 2; ++local) {
      const auto& told = *node->assignments[local].rank;
      ranks.insert(told.rank);
      EXPECT_EQ(told.gang, id);
      EXPECT_EQ(told.world_size, 4u);
      EXPECT_EQ(told.place.local_world_size, 2u);
      EXPECT_EQ(told.place.local_rank, local);
      EXPECT_EQ(told.place.node_rank, told.rank / 2);
      EXPECT_EQ(told.master_address, "127.0.0.1");
      EXPECT_EQ(told.master_port, told.rank == 0 ? 0 : 29500);
    }
  }
  EXPECT_EQ(ranks, (std::set<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
  start_all(id);
  EXPECT_EQ(task(id).state, TaskState::kRunning);
}

TEST_F(Gangs, AreWrittenDownWithAllNodesThatTheirRanksWentTo) {
  for (const char* node : {"a", "b", "c"}) join(node);
  const auto id = submit_gang(4);
  place();
  const auto decisions = records::decisions(state_->store.reader(), id);
  ASSERT_TRUE(decisions) << decisions.error().message;
  ASSERT_THAT(*decisions, SizeIs(1));
  const auto& candidates = decisions->front().candidates;
  ASSERT_THAT(candidates, SizeIs(3));
  EXPECT_EQ(candidates[0].ranks, 2U);
  EXPECT_EQ(candidates[1].ranks, 2U);
  EXPECT_EQ(candidates[2].ranks, 0U);
  EXPECT_TRUE(candidates[2].eligible) << "it had room";
  EXPECT_EQ(decisions->front().eligible, 3U);
}

TEST_F(Gangs, SucceedWhenAllRanksHaveAndLetOthersBeginThen) {
  auto a = join("a");
  auto after = spec("after", {"train"});
  const auto id = submit({gang(2), after})->first_task;
  place();
  start_all(id);
  end(id, 0, success());
  EXPECT_EQ(stored(id)->state, TaskState::kRunning);
  EXPECT_EQ(task(id + 1).state, TaskState::kWaiting);
  end(id, 1, success());
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kSucceeded);
  EXPECT_EQ(stored(id + 2)->state, TaskState::kSucceeded);  // its first rank
  EXPECT_EQ(state_->scores.ends().tasks.at(TaskState::kSucceeded), 1U) << "one task ended";
  place();
  EXPECT_THAT(a->started, SizeIs(3));
  EXPECT_EQ(state_->registry.find("a")->held.size(), 1u);
}

TEST_F(Gangs, ThatANodeRefusesAreTakenBackWholeAndTriedElsewhere) {
  auto a = join("a"), b = join("b");
  b->refusal = Error{ErrorCode::kUnavailable, "the node is stopping"};
  const auto id = submit_gang(4);
  place();
  for (const auto& told : a->assignments) lifecycle_->started("a", told.attempt, 5, {0});
  end_cancelled(id);
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_EQ(task(id).restarts, 0u);
  EXPECT_EQ(task(id).forgiven, 1u);
  EXPECT_EQ(state_->registry.find("b")->assigned_units, 0u);
  auto c = join("c");
  place();
  EXPECT_THAT(c->started, SizeIs(2));
  EXPECT_EQ(task(id).attempt, 2u);
}

TEST_F(Gangs, EndEverywhereWhenARankFailsAndAreTriedAgainOnceNothingRuns) {
  auto a = join("a"), b = join("b");
  const auto id = submit_gang(4, 1);
  place();
  start_all(id);
  const auto first = attempt(id, 3);
  end(id, 1, failure(3));
  EXPECT_EQ(a->cancelled.size() + b->cancelled.size(), 3u);
  place();
  EXPECT_EQ(a->started.size() + b->started.size(), 4u) << "ranks of the last try still run";
  end_cancelled(id);
  EXPECT_EQ(task(id).restarts, 1u);
  place();
  EXPECT_EQ(a->started.size() + b->started.size(), 8u);
  EXPECT_EQ(attempt(id, 3).attempt, first.attempt + 1);
  start_all(id);
  end(id, 0, failure(3));
  end_cancelled(id);
  EXPECT_EQ(stored(id)->state, TaskState::kFailed);
  EXPECT_THAT(stored(id)->reason, HasSubstr("after 1 restarts"));
  EXPECT_THAT(stored(id)->reason, HasSubstr("rank 0"));
  EXPECT_EQ(stored(id + 1)->state, TaskState::kFailed);
  EXPECT_EQ(state_->registry.find("a")->assigned_units, 0u);
}

TEST_F(Gangs, OfWhichANodeIsLostWaitForItsLeaseBeforeTheyAreTriedAgain) {
  auto a = join("a"), b = join("b");
  const auto id = submit_gang(4);
  place();
  start_all(id);
  const auto lost = rank(id, 0).node;
  const auto other = lost == "a" ? b : a;
  membership_->disconnected(tickets_[lost]);
  EXPECT_THAT(other->cancelled, IsEmpty());
  pass(settings_.lease_ms - 1000);
  EXPECT_TRUE(membership_->renew(tickets_[lost == "a" ? "b" : "a"]));
  membership_->expire();
  EXPECT_EQ(task(id).state, TaskState::kRunning);
  pass(1500);
  membership_->expire();
  EXPECT_THAT(other->cancelled, SizeIs(2));
  join("c");
  place();
  EXPECT_EQ(task(id).state, TaskState::kRunning) << "two ranks have not ended yet";
  end_cancelled(id);
  place();
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
  EXPECT_EQ(task(id).attempt, 2u);
  EXPECT_EQ(state_->units.failures(cpu_unit_id(lost, 0)), 1u);
}

TEST_F(Gangs, GoOnThroughARestartOfTheCoordinator) {
  join("a");
  const auto id = submit_gang(2, 1);
  place();
  start_all(id);
  end(id, 0, success());
  const auto running = attempt(id, 1);
  again();
  EXPECT_EQ(task(id).state, TaskState::kRunning);
  auto a = join("a", 7, {running});
  place();
  EXPECT_THAT(a->started, IsEmpty());
  EXPECT_THAT(a->cancelled, IsEmpty());
  end(id, 1, success());
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kSucceeded);
}

TEST_F(Gangs, OfWhichOnlyTheRanksStartsAreOnDiskAreKnownToRun) {
  join("a");
  const auto id = submit_gang(2);
  place();
  start_all(id);
  auto assigned = task(id);
  assigned.state = TaskState::kAssigned;
  store_->write([assigned](Db& db) { return records::update_task(db, assigned); }, nullptr);
  flush();
  again();
  EXPECT_EQ(task(id).state, TaskState::kRunning);
}

TEST_F(Gangs, WhoseRankFailedBeforeARestartOfTheCoordinatorEndAllTheSame) {
  join("a");
  const auto id = submit_gang(2);
  place();
  start_all(id);
  const auto other = attempt(id, 1);
  end(id, 0, failure(4));
  again();
  auto a = join("a", 7, {other});
  ASSERT_THAT(a->cancelled, SizeIs(1));
  EXPECT_EQ(a->cancelled.front().first, other);
  end_cancelled(id);
  EXPECT_EQ(stored(id)->state, TaskState::kFailed);
  EXPECT_THAT(stored(id)->reason, HasSubstr("exit status 4"));
}

TEST_F(Gangs, AreCancelledAsAWhole) {
  auto a = join("a");
  const auto id = submit_gang(2, 5);
  place();
  start_all(id);
  lifecycle_->cancel(rank(id, 1).id, nullptr);  // of one rank as well
  EXPECT_THAT(a->cancelled, SizeIs(2));
  end_cancelled(id);
  EXPECT_EQ(stored(id)->state, TaskState::kCancelled);
  const auto queued = submit_gang(2);
  lifecycle_->cancel(queued, nullptr);
  flush();
  EXPECT_EQ(stored(queued)->state, TaskState::kCancelled);
  EXPECT_EQ(stored(queued + 1)->state, TaskState::kCancelled);
}

TEST_F(Gangs, ThatDoNotStartInTimeAreTakenBack) {
  auto a = join("a");
  auto late = gang(2);
  late.gang.start_within_ms = 5500;
  const auto id = submit({late})->first_task;
  place();
  lifecycle_->started("a", attempt(id, 0), 5, {0});
  pass(5501);
  EXPECT_THAT(a->cancelled, SizeIs(2));
  EXPECT_THAT(task(id).reason, HasSubstr("rank 1 did not start on node 'a' within 5.5 s"));
}

// They may go on from what it has.
TEST_F(Gangs, ArePlacedOnceANodeThatStartsAnewHasToldWhatItHas) {
  join("a");
  const auto id = submit_gang(2, 5);
  place();
  start_all(id);
  join("b");
  membership_->on_replica = [&](const auto&, const auto&, const auto&) {
    dispatcher_->pump();
    EXPECT_EQ(task(id).state, TaskState::kQueued);
  };
  clock_.advance_ns(state_->settings.lease_ms * 1'000'000);
  const ReplicaState there{1, 4096, false, true, true, {0, 9}, false};
  const auto anew = facts("a", 8);
  ASSERT_TRUE(membership_->join(anew, std::make_shared<FakeNode>(), {{"one", there}}, {}));
  place();
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
}

}  // namespace
}  // namespace tierpilot::testing

#include "coordinator/core/outcomes/lifecycle.h"

#include <gmock/gmock.h>

#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST_F(CoreTest, AcknowledgedTasksSurviveARestart) {
  auto receipt = submit({spec("a"), spec("b", {"a"})}, "once");
  ASSERT_TRUE(receipt);
  restart();
  EXPECT_EQ(state_->tasks.find(receipt->first_task)->state, TaskState::kQueued);
  EXPECT_EQ(state_->tasks.find(receipt->first_task + 1)->state, TaskState::kWaiting);
  EXPECT_THAT(state_->tasks.queue(), ElementsAre(Pair(::testing::_, receipt->first_task)));
}

TEST_F(CoreTest, SuccessReleasesChildren) {
  auto node = join("n");
  auto receipt = submit({spec("a"), spec("b"), spec("c", {"a", "b"})});
  const auto a = receipt->first_task, c = receipt->first_task + 2;
  EXPECT_TRUE(exit("n", assign(a, "n"), success()));
  EXPECT_EQ(state_->tasks.find(c)->state, TaskState::kWaiting);
  EXPECT_TRUE(exit("n", assign(a + 1, "n"), success()));
  EXPECT_EQ(state_->tasks.find(c)->state, TaskState::kQueued);
  EXPECT_EQ(stored(a)->state, TaskState::kSucceeded);
  EXPECT_EQ(node->released.size(), 2u);
  EXPECT_EQ(state_->registry.find("n")->assigned_units, 0u);
}

TEST_F(CoreTest, WhatNeverRanIsToldTheBeginningOfWhy) {
  join("n");
  const auto receipt = submit({spec(std::string(1000, 'a')), spec("b", {std::string(1000, 'a')})});
  ASSERT_TRUE(receipt) << receipt.error().message;
  auto failed = success();
  failed.how = TaskEnd::kTimedOut;
  failed.reason = std::string(100'000, 'r');
  EXPECT_TRUE(exit("n", assign(receipt->first_task, "n"), failed));
  const auto child = stored(receipt->first_task + 1);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->state, TaskState::kFailed);
  EXPECT_THAT(child->reason, HasSubstr("rrr"));
  EXPECT_LT(child->reason.size(), 1000u);
}

// Its node had nobody to tell it to for 200 s, not even of its start.
TEST_F(CoreTest, AnEndThatIsToldLateIsWhenItWas) {
  join("n");
  for (const uint64_t wall_ns : {0ull, 20'000'000'000ull}) {
    const auto id = submit({spec("a")})->first_task;
    const auto submitted_ms = clock_.wall_ms();
    const auto attempt = assign(id, "n");
    clock_.advance_ns(300'000'000'000);
    lifecycle_->started("n", attempt, 7, {});
    auto late = success();
    late.ago_ms = 200'000;
    late.wall_ns = wall_ns;
    ASSERT_TRUE(exit("n", attempt, late));
    const auto task = stored(id);
    EXPECT_EQ(task->finished_ms - submitted_ms, 100'000) << wall_ns;
    EXPECT_EQ(task->finished_ms - task->started_ms, static_cast<int64_t>(wall_ns / 1'000'000));
  }
}

TEST_F(CoreTest, WaitingSurvivesARestartHalfWay) {
  join("n");
  auto receipt = submit({spec("a"), spec("b"), spec("c", {"a", "b"})});
  ASSERT_TRUE(exit("n", assign(receipt->first_task, "n"), success()));
  restart();
  join("n");
  ASSERT_TRUE(exit("n", assign(receipt->first_task + 1, "n"), success()));
  EXPECT_EQ(state_->tasks.find(receipt->first_task + 2)->state, TaskState::kQueued);
}

TEST_F(CoreTest, FailureFailsAllDescendantsWithTheReason) {
  join("n");
  auto receipt = submit({spec("a"), spec("b", {"a"}), spec("c", {"b"}), spec("d")});
  ASSERT_TRUE(exit("n", assign(receipt->first_task, "n"), failure(3)));
  EXPECT_EQ(stored(receipt->first_task)->reason, "exit status 3");
  for (const uint64_t id : {receipt->first_task + 1, receipt->first_task + 2}) {
    EXPECT_EQ(stored(id)->state, TaskState::kFailed);
    EXPECT_THAT(stored(id)->reason, HasSubstr("'a') before it failed: exit status 3"));
  }
  EXPECT_EQ(stored(receipt->first_task + 3)->state, TaskState::kQueued);
  EXPECT_EQ(ended_.size(), 3u);
}

TEST_F(CoreTest, APausedTaskSaysSoOnDisk) {
  join("n");
  auto receipt = submit({spec("a")});
  const auto id = receipt->first_task;
  const auto attempt = assign(id, "n");
  lifecycle_->started("n", attempt);
  const auto set_paused = [&](AttemptId which, bool paused) {
    bool done = false;
    lifecycle_->paused(which, paused, [&](Status s) { done = s.has_value(); });
    return posts_.run_until([&] { return done; });
  };
  ASSERT_TRUE(set_paused(attempt, true));
  EXPECT_EQ(stored(id)->reason, "paused");
  EXPECT_EQ(stored(id)->state, TaskState::kRunning);
  ASSERT_TRUE(set_paused({id, attempt.attempt + 1}, false));
  EXPECT_EQ(stored(id)->reason, "paused") << "another attempt's";
  ASSERT_TRUE(set_paused(attempt, false));
  EXPECT_EQ(stored(id)->reason, "");
}

TEST_F(CoreTest, StartsAreWrittenTogetherAndNotAfterAnEnd) {
  join("n");
  const auto first = submit({spec("a"), spec("b"), spec("c")})->first_task;
  std::vector<AttemptId> attempts;
  for (uint64_t id = first; id < first + 3; ++id) attempts.push_back(assign(id, "n"));
  for (const auto attempt : attempts) lifecycle_->started("n", attempt);
  ASSERT_TRUE(exit("n", attempts[1], success()));
  flush();
  EXPECT_EQ(stored(first)->state, TaskState::kRunning);
  EXPECT_EQ(stored(first + 1)->state, TaskState::kSucceeded);
  EXPECT_GT(stored(first + 1)->started_ms, 0);
  EXPECT_EQ(stored(first + 2)->state, TaskState::kRunning);
}

TEST_F(CoreTest, CancelEndsWaitingTasksAtOnceAndAsksTheNodeForOthers) {
  auto node = join("n");
  auto receipt = submit({spec("a"), spec("b")});
  bool done = false;
  lifecycle_->cancel(receipt->first_task, [&](Status s) { done = s.has_value(); });
  ASSERT_TRUE(posts_.run_until([&] { return done; }));
  EXPECT_EQ(stored(receipt->first_task)->state, TaskState::kCancelled);
  const auto attempt = assign(receipt->first_task + 1, "n");
  lifecycle_->cancel(attempt.task, nullptr);
  ASSERT_EQ(node->cancelled.size(), 1u);
  EXPECT_EQ(node->cancelled[0].first, attempt);
  TaskExit gone;
  gone.how = TaskEnd::kCancelled;
  ASSERT_TRUE(exit("n", attempt, gone));
  EXPECT_EQ(stored(attempt.task)->state, TaskState::kCancelled);
}

TEST_F(CoreTest, ATaskThatItsNodeEndedForItsOwnReasonsRunsAgain) {
  join("n");
  auto receipt = submit({spec("a"), spec("b", {"a"})});
  const auto attempt = assign(receipt->first_task, "n");
  TaskExit stopped;
  stopped.how = TaskEnd::kCancelled;
  stopped.reason = "the node is stopping";
  ASSERT_TRUE(exit("n", attempt, stopped));
  EXPECT_EQ(stored(attempt.task)->state, TaskState::kQueued);
  EXPECT_EQ(stored(attempt.task + 1)->state, TaskState::kWaiting);
}

TEST_F(CoreTest, ACancelHoldsWhenTheAssignmentDidNotReachTheDisk) {
  join("n");
  auto receipt = submit({spec("a")});
  const auto attempt = assign(receipt->first_task, "n");
  lifecycle_->cancel(attempt.task, nullptr);
  lifecycle_->unassign(*state_->tasks.find(attempt.task), "disk full");
  flush();
  EXPECT_EQ(stored(attempt.task)->state, TaskState::kCancelled);
}

// Sixteen times without counting as the task's, which may bring its nodes down itself.
TEST_F(CoreTest, LostNodesMeanOtherTriesAndInTheEndFailure) {
  settings_.max_attempts = 2;
  restart();
  auto receipt = submit({spec("a")});
  for (int i = 0; i < 18; ++i) {
    ASSERT_TRUE(state_->tasks.find(receipt->first_task)) << "after " << i;
    join("n", 10 + i);
    assign(receipt->first_task, "n");
    clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
    membership_->expire();
    flush();
  }
  EXPECT_EQ(stored(receipt->first_task)->state, TaskState::kFailed);
  EXPECT_THAT(stored(receipt->first_task)->reason, HasSubstr("try 2 of 2"));
}

TEST_F(CoreTest, NotGivenAwayAgainBeforeTheLeaseEnds) {
  join("n");
  auto receipt = submit({spec("a")});
  assign(receipt->first_task, "n");
  membership_->disconnected(tickets_["n"]);
  clock_.advance_ns(settings_.lease_ms * 1'000'000 - 1'000'000);
  membership_->expire();
  EXPECT_EQ(state_->tasks.find(receipt->first_task)->state, TaskState::kAssigned);
  clock_.advance_ns(2'000'000);
  membership_->expire();
  EXPECT_EQ(state_->tasks.find(receipt->first_task)->state, TaskState::kQueued);
}

TEST_F(CoreTest, RestartAdoptsWhatANodeStillHolds) {
  join("n", 42);
  auto receipt = submit({spec("a"), spec("b")});
  const auto a = assign(receipt->first_task, "n");
  const auto b = assign(receipt->first_task + 1, "n");
  lifecycle_->started("n", a);
  flush();
  restart();
  EXPECT_EQ(state_->tasks.find(a.task)->state, TaskState::kRunning);
  auto node = join("n", 42, {a, {99, 1}});
  EXPECT_EQ(state_->tasks.find(a.task)->state, TaskState::kRunning);
  EXPECT_EQ(state_->tasks.find(b.task)->state, TaskState::kQueued);  // it never got there
  ASSERT_EQ(node->cancelled.size(), 1u);                             // nobody knows 99
  EXPECT_EQ(node->cancelled[0].first, (AttemptId{99, 1}));
  EXPECT_TRUE(exit("n", a, success()));
  EXPECT_EQ(stored(a.task)->state, TaskState::kSucceeded);
}

TEST_F(CoreTest, ANewInstanceWaitsForTheOldOnesLease) {
  join("n", 1);
  auto receipt = submit({spec("a")});
  assign(receipt->first_task, "n");
  auto early = membership_->join(facts("n", 2), std::make_shared<FakeNode>(), {}, {});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kConflict);
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  auto late = membership_->join(facts("n", 2), std::make_shared<FakeNode>(), {}, {});
  EXPECT_TRUE(late);
  EXPECT_EQ(state_->tasks.find(receipt->first_task)->state, TaskState::kQueued);
}

TEST_F(CoreTest, ALateSuccessIsTakenWhileNoOtherTryHasBegun) {
  join("n");
  auto receipt = submit({spec("a")});
  const auto attempt = assign(receipt->first_task, "n");
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  membership_->expire();
  join("n", 7, {attempt});
  EXPECT_TRUE(exit("n", attempt, success()));
  EXPECT_EQ(stored(attempt.task)->state, TaskState::kSucceeded);
  EXPECT_TRUE(state_->tasks.queue().empty());
}

TEST_F(CoreTest, AReportOfAnOldAttemptChangesNothing) {
  join("n");
  auto other = join("m");
  auto receipt = submit({spec("a")});
  const auto old = assign(receipt->first_task, "n");
  clock_.advance_ns(settings_.lease_ms * 1'000'000 + 1);
  ASSERT_TRUE(membership_->join(facts("m"), other, {}, {}));
  membership_->expire();
  flush();
  const auto fresh = assign(receipt->first_task, "m");
  EXPECT_TRUE(exit("n", old, success()));
  EXPECT_EQ(state_->tasks.find(fresh.task)->state, TaskState::kAssigned);
  EXPECT_EQ(fresh.attempt, old.attempt + 1);
}

TEST_F(CoreTest, RepeatedExitIsAcknowledgedAgain) {
  join("n");
  auto receipt = submit({spec("a")});
  const auto attempt = assign(receipt->first_task, "n");
  EXPECT_TRUE(exit("n", attempt, success()));
  EXPECT_TRUE(exit("n", attempt, success()));
}

TEST_F(CoreTest, WritersTakeTurnsAndPublishTheirVersion) {
  auto n = join("n");
  auto m = join("m");
  add_dataset("d", 4096, "n");
  membership_->replica_changed("m", "d", {1, 4096, true, false});
  auto writer = spec("w");
  writer.datasets = {{"d", true}};
  auto second = writer;
  second.name = "w2";
  auto receipt = submit({writer, second});
  const auto attempt = assign(receipt->first_task, "m");
  // Writers of one dataset take turns.
  EXPECT_THAT(state_->catalog.blocked_by(*state_->tasks.find(receipt->first_task + 1)),
              HasSubstr("it writes dataset 'd'"));
  auto done = success();
  done.written = {{"d", 2, 8192}};
  ASSERT_TRUE(exit("m", attempt, done));
  const auto& entry = *state_->catalog.find("d");
  EXPECT_EQ(entry.dataset.version, 2u);
  EXPECT_EQ(entry.dataset.bytes, 8192u);
  EXPECT_EQ(entry.dataset.home, "m");
  EXPECT_EQ(entry.replicas.size(), 1u);
  EXPECT_THAT(n->dropped, ElementsAre(std::pair<std::string, uint64_t>{"d", 2}));
  EXPECT_THAT(m->dropped, ElementsAre(std::pair<std::string, uint64_t>{"d", 2}))
      << "it keeps its old version until it hears that the new one counts";
  EXPECT_THAT(m->homes, ElementsAre("d"));
  EXPECT_EQ(state_->catalog.blocked_by(*state_->tasks.find(receipt->first_task + 1)), "");
  restart();
  EXPECT_EQ(state_->catalog.find("d")->dataset.version, 2u);
}

// Whatever its node says.
TEST_F(CoreTest, ATaskPublishesNothingThatItWasNotToWrite) {
  auto n = join("n");
  join("m");
  add_dataset("d", 4096, "n");
  auto reader = spec("r");
  reader.datasets = {{"d", false}};
  auto receipt = submit({reader, spec("other")});
  for (const uint64_t id : {receipt->first_task, receipt->first_task + 1}) {
    auto done = success();
    done.written = {{"d", 2, 8192}};
    ASSERT_TRUE(exit("m", assign(id, "m"), done));
    EXPECT_EQ(state_->catalog.find("d")->dataset.version, 1u);
    EXPECT_EQ(state_->catalog.find("d")->dataset.home, "n");
    EXPECT_THAT(n->dropped, ::testing::IsEmpty());
  }
}

TEST_F(CoreTest, StaleDataDoesNotCountAsATry) {
  settings_.max_attempts = 1;
  restart();
  join("n")->made = {0, 1};
  add_dataset("d", 4096, "n");
  auto reader = spec("r");
  reader.datasets = {{"d", false}};
  auto receipt = submit({reader});
  const auto attempt = assign(receipt->first_task, "n");
  state_->catalog.find("d")->dataset.version = 2;
  TaskExit failed;
  failed.how = TaskEnd::kDataFailed;
  failed.reason = "gone";
  ASSERT_TRUE(exit("n", attempt, failed));
  EXPECT_EQ(state_->tasks.find(attempt.task)->state, TaskState::kQueued);
}

TEST_F(CoreTest, DatasetErrorsNameTheDataset) {
  std::optional<Result<Dataset>> answer;
  const auto keep = [&](auto result) { answer = std::move(result); };
  datasets_->add("", "d", ZeroSource{1}, "", keep);
  EXPECT_EQ(answer->error().code, ErrorCode::kUnavailable);  // no node
  join("n");
  datasets_->add("", "../etc", ZeroSource{1}, "", keep);
  EXPECT_EQ(answer->error().code, ErrorCode::kInvalid);
  datasets_->add("", "d", FileSource{"/none"}, "", keep);
  EXPECT_THAT(answer->error().message, HasSubstr("no such file"));
  add_dataset("d", 1, "n");
  datasets_->add("", "d", ZeroSource{1}, "", keep);
  EXPECT_EQ(answer->error().code, ErrorCode::kConflict);
  auto user = spec("u");
  user.datasets = {{"d", false}};
  ASSERT_TRUE(submit({user}));
  std::optional<Status> removed;
  datasets_->remove("d", [&](Status s) { removed = s; });
  EXPECT_EQ(removed->error().code, ErrorCode::kConflict);
}

TEST_F(CoreTest, ADatasetThatCouldNotBeWrittenDownIsDroppedAgain) {
  auto node = join("n");
  store_->write([](Db& db) { return db.execute("DROP TABLE datasets"); }, nullptr);
  flush();
  std::optional<Result<Dataset>> answer;
  datasets_->add("", "d", ZeroSource{1}, "n", [&](auto made) { answer = std::move(made); });
  ASSERT_TRUE(posts_.run_until([&] { return answer.has_value(); }));
  EXPECT_FALSE(*answer);
  EXPECT_THAT(node->dropped, ElementsAre(std::pair<std::string, uint64_t>{"d", UINT64_MAX}));
}

// As after a crash between the node's work and the coordinator's.
TEST_F(CoreTest, WhatNoCatalogKnowsBlocksItsNameUntilItIsRemoved) {
  join("n");
  auto node = std::make_shared<FakeNode>();
  ASSERT_TRUE(membership_->join(facts("m"), node, {{"d", {1, 4096, false, true}}}, {}));
  std::optional<Result<Dataset>> answer;
  datasets_->add("", "d", ZeroSource{1}, "n", [&](auto made) { answer = std::move(made); });
  ASSERT_TRUE(answer && !*answer);
  EXPECT_EQ(answer->error().code, ErrorCode::kConflict);
  EXPECT_THAT(answer->error().message, HasSubstr("node 'm'"));
  EXPECT_THAT(answer->error().message, HasSubstr("dataset remove d"));
  EXPECT_THAT(node->dropped, ::testing::IsEmpty()) << "nobody asked for that";

  std::optional<Status> removed;
  datasets_->remove("d", [&](Status s) { removed = s; });
  ASSERT_TRUE(removed && *removed);
  EXPECT_THAT(node->dropped, ElementsAre(std::pair<std::string, uint64_t>{"d", UINT64_MAX}));
  membership_->replica_changed("m", "d", {1, 4096, false, false});
  datasets_->remove("d", [&](Status s) { removed = s; });
  EXPECT_EQ(removed->error().code, ErrorCode::kNotFound);
  add_dataset("d", 1, "n");
  EXPECT_EQ(state_->catalog.find("d")->replicas.size(), 1u);
}

TEST_F(CoreTest, WaitingIsNoPartOfTheRateOfFetches) {
  join("n");
  const auto task = submit({spec("a")})->first_task;
  ServedData data{.fetched_bytes = 8'000'000, .latency_ns = 900'000'000};
  data.queued_ns = 892'000'000;
  data.fetch_ns = 8'000'000;
  lifecycle_->served("n", assign(task, "n"), data);
  EXPECT_NEAR(state_->registry.find("n")->rates().fetch_bytes_per_s, 1e9, 1);
}

}  // namespace
}  // namespace tierpilot::testing

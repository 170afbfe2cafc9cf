// What is to be on several nodes is there before a write counts: a node that is lost right after
// takes nothing along.
#include <gmock/gmock.h>

#include "coordinator/core/data/write_copies.h"
#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr ContentDigest kFirst{0, 1}, kNext{0, 2};

class WriteCopiesTest : public CoreTest {
 protected:
  void SetUp() override { begin_again(); }
  ~WriteCopiesTest() override { copies_.reset(); }

  // What the coordinator does at its start.
  void begin_again() {
    orders_.emplace(*state_);
    copies_ = std::make_unique<WriteCopies>(*state_, *orders_,
                                            [this](uint64_t task) { lifecycle_->copied(task); });
    lifecycle_->resume_copies(*copies_);
    datasets_ = std::make_unique<DatasetAdmin>(
        *state_, [] {},
        [this](const DatasetVersion& what, std::function<void()> done) {
          copies_->when_kept(what, std::move(done));
        });
  }
  void restart() {
    flush();
    datasets_.reset();
    copies_.reset();
    CoreTest::restart();
    begin_again();
  }
  std::shared_ptr<FakeNode> with_room(const std::string& name) {
    auto node = join(name);
    node->made = kFirst;
    state_->registry.find(name)->slow_free_bytes = 1 << 20;
    return node;
  }
  // Version 1 is on n and m.
  void add_for(uint32_t replicas) {
    n = with_room("n");
    std::optional<Result<Dataset>> made;
    datasets_->add(
        "", "d", ZeroSource{4096}, "n", [&](auto told) { made = std::move(told); }, replicas);
    ASSERT_TRUE(posts_.run_until([&] { return made.has_value(); }));
    ASSERT_TRUE(*made);
    m = with_room("m");
    membership_->replica_changed("m", "d", {1, 4096, false, true, true, kFirst});
  }
  uint64_t submit_writer() {
    auto writer = spec();
    writer.datasets = {{"d", true}};
    return submit({writer})->first_task;
  }
  static TaskExit wrote() {
    auto exit = success();
    exit.written = {{"d", 2, 4096, kNext}};
    return exit;
  }
  // It has ended well, on n.
  uint64_t written_on_n() {
    const uint64_t task = submit_writer();
    attempt = assign(task, "n");
    lifecycle_->started("n", attempt);
    EXPECT_TRUE(exit("n", attempt, wrote()));
    return task;
  }
  void answer(FakeNode& node, const Status& status = {}) {
    for (auto& [need, done] : std::exchange(node.keeps, {})) done(status);
    flush();
  }
  void pass(int64_t ms) {
    for (int64_t left_ms = ms; left_ms > 0; left_ms -= 100) {
      clock_.advance_ns(100'000'000);
      for (const auto& [name, ticket] : tickets_)
        if (silent_ != name) (void)membership_->renew(ticket);
      membership_->expire();
      copies_->tick();
    }
    flush();
  }
  uint64_t version() { return state_->catalog.find("d")->dataset.version; }
  TaskState state_of(uint64_t task) {
    flush();
    const auto* known = state_->tasks.find(task);
    return known ? known->state : stored(task)->state;
  }

  std::shared_ptr<FakeNode> n, m;
  AttemptId attempt;
  std::string silent_;  // a node that is not heard of any more
  std::optional<CopyOrders> orders_;
  std::unique_ptr<WriteCopies> copies_;
};

TEST_F(WriteCopiesTest, AnEndCountsOnceASecondNodeHasWhatWasWritten) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  EXPECT_EQ(state_of(task), TaskState::kRunning);
  EXPECT_EQ(version(), 1u) << "readers get what is safe";
  ASSERT_THAT(m->keeps, SizeIs(1));
  const auto& need = m->keeps.front().first;
  EXPECT_EQ(need.version, 2u);
  EXPECT_EQ(need.digest, kNext);
  EXPECT_THAT(need.sources, ElementsAre("unix:/n"));
  EXPECT_THAT(m->dropped, IsEmpty());
  answer(*m);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
  EXPECT_EQ(version(), 2u);
  EXPECT_EQ(state_->catalog.find("d")->dataset.home, "n");
  EXPECT_EQ(nodes_that_keep(state_->catalog.find("d")->replicas, 2), 2u);
  EXPECT_THAT(m->dropped, ElementsAre(Pair("d", 2u)));
  EXPECT_THAT(ended_, ElementsAre(task));
}

TEST_F(WriteCopiesTest, WhereOneNodeIsEnoughNobodyWaits) {
  ASSERT_NO_FATAL_FAILURE(add_for(1));
  EXPECT_EQ(state_of(written_on_n()), TaskState::kSucceeded);
  EXPECT_THAT(m->keeps, IsEmpty());
}

TEST_F(WriteCopiesTest, UnitsAreFreeMeanwhileAndTheDatasetIsNot) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  EXPECT_EQ(state_->registry.find("n")->assigned_units, 0u);
  const uint64_t next = submit_writer();
  EXPECT_NE(state_->catalog.blocked_by(*state_->tasks.find(next)), "");
  answer(*m);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
  EXPECT_EQ(state_->catalog.blocked_by(*state_->tasks.find(next)), "");
}

TEST_F(WriteCopiesTest, ANodeThatIsLostBeforeTakesNoVersionAlong) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  silent_ = "n";
  pass(settings_.lease_ms + 200);
  EXPECT_EQ(state_of(task), TaskState::kQueued) << "it is tried again";
  EXPECT_EQ(version(), 1u);
  EXPECT_EQ(nodes_that_keep(state_->catalog.find("d")->replicas, 1), 1u);
  // Its copy comes too late, and is in the way of the next try's.
  answer(*m);
  EXPECT_THAT(m->discarded, ElementsAre(Pair("d", 2u)));
  EXPECT_EQ(version(), 1u);
}

TEST_F(WriteCopiesTest, ANodeThatIsLostAfterLeavesItsVersionBehind) {
  ASSERT_NO_FATAL_FAILURE(add_for(3));
  const uint64_t task = written_on_n();
  answer(*m);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded) << "there is no third node";
  const uint64_t again = submit_writer();
  attempt = assign(again, "n");
  lifecycle_->started("n", attempt);
  auto third = wrote();
  third.written.front().version = 3;
  auto o = with_room("o");
  ASSERT_TRUE(exit("n", attempt, third));
  ASSERT_THAT(m->keeps.size() + o->keeps.size(), 1u) << "one after the other";
  auto& first = m->keeps.empty() ? o : m;
  answer(*first);
  EXPECT_EQ(state_of(again), TaskState::kRunning);
  silent_ = "n";
  pass(settings_.lease_ms + 200);
  EXPECT_EQ(state_of(again), TaskState::kRunning) << "the third copy is on its way";
  answer(first == m ? *o : *m);
  EXPECT_EQ(state_of(again), TaskState::kRunning) << "a lost node may be back soon";
  pass(30'000);
  EXPECT_EQ(state_of(again), TaskState::kSucceeded);
  EXPECT_EQ(version(), 3u);
  EXPECT_NE(state_->catalog.find("d")->dataset.home, "n");
}

TEST_F(WriteCopiesTest, WhoeverCannotTakeACopyHoldsUpNothing) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  answer(*m, fail(ErrorCode::kExhausted, "no room"));
  EXPECT_EQ(state_of(task), TaskState::kRunning) << "the source may be what failed, and be lost";
  pass(100);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded) << "it is there, and no other node is known";
  EXPECT_EQ(version(), 2u);
}

TEST_F(WriteCopiesTest, ANodeWhoseConnectionBreaksIsAskedAgain) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  membership_->disconnected(tickets_["m"]);
  answer(*m, fail(ErrorCode::kUnreachable, "the connection was closed"));
  pass(500);
  EXPECT_EQ(state_of(task), TaskState::kRunning);
  m = with_room("m");
  pass(100);
  ASSERT_THAT(m->keeps, SizeIs(1));
  answer(*m);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
}

TEST_F(WriteCopiesTest, ANodeThatDoesNotReachTheOtherOneIsAskedSoOftenOnly) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  int asked = 0;
  for (; state_of(task) == TaskState::kRunning && asked < 100; pass(3'000)) {
    asked += static_cast<int>(m->keeps.size());
    answer(*m, fail(ErrorCode::kUnreachable, "'unix:/n': connection refused"));
  }
  EXPECT_EQ(asked, 8);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
}

TEST_F(WriteCopiesTest, AnAnswerOverAnOldConnectionIsNoCopy) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  const auto old = m;
  membership_->disconnected(tickets_["m"]);
  m = with_room("m");
  answer(*old);
  EXPECT_EQ(state_of(task), TaskState::kRunning) << "it may be another machine of that name";
  pass(100);
  ASSERT_THAT(m->keeps, SizeIs(1));
  answer(*m);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
}

TEST_F(WriteCopiesTest, ATaskThatIsCancelledMeanwhileHasWrittenNothing) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  lifecycle_->cancel(task, nullptr);
  EXPECT_EQ(state_of(task), TaskState::kCancelled);
  EXPECT_THAT(n->discarded, ElementsAre(Pair("d", 2u)));
  answer(*m);
  EXPECT_THAT(m->discarded, ElementsAre(Pair("d", 2u)));
  EXPECT_EQ(version(), 1u);
  EXPECT_EQ(state_->catalog.blocked_by(*state_->tasks.find(submit_writer())), "");
}

TEST_F(WriteCopiesTest, ANodeIsNotDrainedBeforeOthersHaveWhatItHas) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  written_on_n();
  state_->registry.set_order("n", {NodeOrder::Kind::kDrained, 0, 0, "tester"});
  EXPECT_THAT(state_->registry.find("n")->closed_because(), HasSubstr("1 tasks are left"));
  answer(*m);
  EXPECT_THAT(state_->registry.find("n")->closed_because(), HasSubstr("no task is left"));
}

// Two tries of a program that writes the same each time.
TEST_F(WriteCopiesTest, WhatAnEarlierTryHasMadeTooStays) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = submit_writer();
  const auto first = assign(task, "m");
  lifecycle_->started("m", first);
  silent_ = "m";
  pass(settings_.lease_ms + 200);
  ASSERT_EQ(state_of(task), TaskState::kQueued);
  attempt = assign(task, "n");
  lifecycle_->started("n", attempt);
  EXPECT_TRUE(exit("n", attempt, wrote()));
  silent_.clear();
  m = std::make_shared<FakeNode>();
  tickets_["m"] =
      *membership_->join(facts("m"), m, {{"d", {2, 4096, true, true, true, kNext}}}, {first});
  EXPECT_TRUE(exit("m", first, wrote()));
  EXPECT_THAT(m->discarded, IsEmpty());
  pass(100);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
  EXPECT_EQ(nodes_that_keep(state_->catalog.find("d")->replicas, 2), 2u);
}

TEST_F(WriteCopiesTest, ANodeThatHasNoRoomHoldsUpNothing) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  state_->registry.find("m")->slow_free_bytes = 1;
  EXPECT_EQ(state_of(written_on_n()), TaskState::kSucceeded);
  EXPECT_THAT(m->keeps, IsEmpty());
}

TEST_F(WriteCopiesTest, ANodeThatDoesNotComeBackIsWaitedForSoLongOnly) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  restart();
  const ReplicaState next{2, 4096, true, true, true, kNext};
  auto back = std::make_shared<FakeNode>();
  tickets_["n"] = *membership_->join(facts("n"), back, {{"d", next}}, {});
  pass(20'000);
  EXPECT_EQ(state_of(task), TaskState::kRunning);
  pass(15'000);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
}

TEST_F(WriteCopiesTest, ANodeThatIsAwayForAMomentIsWaitedFor) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  membership_->disconnected(tickets_["m"]);
  const uint64_t task = written_on_n();
  pass(200);
  EXPECT_EQ(state_of(task), TaskState::kRunning);
  m = with_room("m");
  pass(100);
  ASSERT_THAT(m->keeps, SizeIs(1));
  answer(*m);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
}

TEST_F(WriteCopiesTest, ANodeThatWasJustLostIsWaitedForOneThatIsGoneIsNot) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  silent_ = "m";
  pass(settings_.lease_ms + 200);
  uint64_t task = written_on_n();
  pass(20'000);
  EXPECT_EQ(state_of(task), TaskState::kRunning);
  pass(15'000);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
  auto again = wrote();
  again.written.front().version = 3;
  task = submit_writer();
  attempt = assign(task, "n");
  lifecycle_->started("n", attempt);
  EXPECT_TRUE(exit("n", attempt, again));
  EXPECT_EQ(state_of(task), TaskState::kSucceeded) << "or each write would wait for it";
}

TEST_F(WriteCopiesTest, ACoordinatorThatIsRestartedGoesOn) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  restart();
  EXPECT_EQ(state_of(task), TaskState::kRunning);
  const ReplicaState first{1, 4096, false, true, true, kFirst},
      next{2, 4096, true, true, true, kNext};
  auto back = std::make_shared<FakeNode>();
  ASSERT_TRUE(membership_->join(facts("n"), back, {{"d", first}, {"d", next}}, {}));
  EXPECT_THAT(back->discarded, IsEmpty()) << "it is to become the current one";
  EXPECT_EQ(state_of(task), TaskState::kRunning) << "the other node is known, and not back yet";
  m = with_room("m");
  pass(100);
  ASSERT_THAT(m->keeps, SizeIs(1));
  answer(*m);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
  EXPECT_EQ(version(), 2u);
}

TEST_F(WriteCopiesTest, AnEndThatIsToldAgainCountsOnce) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  EXPECT_TRUE(exit("n", attempt, wrote()));
  ASSERT_THAT(m->keeps, SizeIs(1));
  answer(*m);
  EXPECT_TRUE(exit("n", attempt, wrote()));
  EXPECT_THAT(ended_, ElementsAre(task));
  EXPECT_EQ(version(), 2u);
}

TEST_F(WriteCopiesTest, WhatIsDamagedBeforeItIsCopiedIsWrittenAgain) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  membership_->replica_changed("n", "d", {2, 4096, false, false, false, kNext, true});
  answer(*m, fail(ErrorCode::kIo, "other bytes"));
  pass(31'000);
  EXPECT_EQ(state_of(task), TaskState::kQueued);
  EXPECT_EQ(version(), 1u);
}

TEST_F(WriteCopiesTest, ASuccessThatIsToldLateWaitsToo) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = submit_writer();
  attempt = assign(task, "n");
  lifecycle_->started("n", attempt);
  silent_ = "n";
  pass(settings_.lease_ms + 200);
  ASSERT_EQ(state_of(task), TaskState::kQueued);
  join("n", 7, {attempt});
  EXPECT_TRUE(exit("n", attempt, wrote()));
  EXPECT_EQ(state_of(task), TaskState::kRunning);
  ASSERT_THAT(m->keeps, SizeIs(1));
  answer(*m);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
}

TEST_F(WriteCopiesTest, ADatasetIsAddedOnceItIsOnSoManyNodes) {
  n = with_room("n");
  m = with_room("m");
  std::optional<Result<Dataset>> made;
  datasets_->add(
      "r", "d", ZeroSource{4096}, "n", [&](auto told) { made = std::move(told); }, 2);
  ASSERT_TRUE(posts_.run_until([&] { return !m->keeps.empty(); }));
  EXPECT_FALSE(made) << "a file that is deleted now may be the last one";
  std::optional<Result<Dataset>> again;
  datasets_->add(
      "r", "d", ZeroSource{4096}, "n", [&](auto told) { again = std::move(told); }, 2);
  EXPECT_FALSE(again);
  answer(*m);
  ASSERT_TRUE(made && *made);
  EXPECT_TRUE(again && *again);
}

TEST_F(WriteCopiesTest, ANodeIsAskedForFewCopiesAtATime) {
  n = with_room("n");
  m = with_room("m");
  size_t added = 0;
  for (size_t i = 0; i < 3 * size_t{4}; ++i)
    datasets_->add(
        "", "d" + std::to_string(i), ZeroSource{4096}, "n", [&](auto told) { added += !!told; }, 2);
  for (size_t i = 0; i < 3 * size_t{4}; ++i) {
    ASSERT_TRUE(posts_.run_until([&] { return !m->keeps.empty(); }));
    flush();
    EXPECT_LE(m->keeps.size(), size_t{4});
    auto done = std::move(m->keeps.front().second);
    m->keeps.erase(m->keeps.begin());
    done({});
  }
  EXPECT_EQ(added, 3 * size_t{4});
}

}  // namespace
}  // namespace tierpilot::testing

// A node that is lost right after a write takes nothing along, and who cannot copy holds up nothing
// for ever.
#include "write_copies_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

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
  auto o = with_room("o");
  const uint64_t again = written_on_n(3);
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

TEST_F(WriteCopiesTest, ANodeThatWasJustLostIsWaitedForOneThatIsGoneIsNot) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  silent_ = "m";
  pass(settings_.lease_ms + 200);
  uint64_t task = written_on_n();
  pass(20'000);
  EXPECT_EQ(state_of(task), TaskState::kRunning);
  pass(15'000);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
  task = written_on_n(3);
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

TEST_F(WriteCopiesTest, WhatIsDamagedBeforeItIsCopiedIsWrittenAgain) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  membership_->replica_changed("n", "d", {2, 4096, false, false, false, kNext, true});
  answer(*m, fail(ErrorCode::kIo, "other bytes"));
  pass(31'000);
  EXPECT_EQ(state_of(task), TaskState::kQueued);
  EXPECT_EQ(version(), 1u);
}

TEST_F(WriteCopiesTest, WhatOnlyALateNodeHasIsNotWrittenAgain) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  silent_ = "n";
  pass(settings_.lease_ms + 200);
  ASSERT_EQ(state_of(task), TaskState::kQueued);
  answer(*m, fail(ErrorCode::kIo, "no source has it"));
  // What is left of version 1 goes with m's disk.
  membership_->replica_changed("m", "d", {1, 4096, false, false, false, kFirst, true});
  restart();
  m = with_room("m");
  come_back_with_next();
  EXPECT_THAT(n->discarded, IsEmpty());
  EXPECT_EQ(state_of(task), TaskState::kRunning) << "its end counts once there are copies";
  pass(100);
  ASSERT_THAT(m->keeps, SizeIs(1));
  answer(*m);
  EXPECT_EQ(state_of(task), TaskState::kSucceeded);
  EXPECT_EQ(version(), 2u);
}

TEST_F(WriteCopiesTest, WhatALateNodeHasComesTooLateForATryThatHasBegun) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  const uint64_t task = written_on_n();
  silent_ = "n";
  pass(settings_.lease_ms + 200);
  ASSERT_EQ(state_of(task), TaskState::kQueued);
  answer(*m, fail(ErrorCode::kIo, "no source has it"));
  const auto second = assign(task, "m");
  come_back_with_next();
  EXPECT_THAT(n->discarded, ElementsAre(Pair("d", 2u)));
  EXPECT_EQ(state_of(task), TaskState::kAssigned);
  EXPECT_EQ(state_->tasks.find(task)->attempt, second.attempt);
}

TEST_F(WriteCopiesTest, ATaskIsWrittenAgainWhereALateNodeHasHalfOfIt) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  std::optional<Result<Dataset>> made;
  datasets_->add(
      "", "e", ZeroSource{4096}, "n", [&](auto told) { made = std::move(told); }, 1);
  ASSERT_TRUE(posts_.run_until([&] { return made.has_value(); }));
  auto writer = spec();
  writer.datasets = {{"d", true}, {"e", true}};
  const uint64_t task = submit({writer})->first_task;
  attempt = assign(task, "n");
  lifecycle_->started("n", attempt);
  auto both = wrote();
  both.written.push_back({"e", 2, 4096, kNext});
  EXPECT_TRUE(exit("n", attempt, both));
  silent_ = "n";
  pass(settings_.lease_ms + 200);
  ASSERT_EQ(state_of(task), TaskState::kQueued);
  answer(*m, fail(ErrorCode::kIo, "no source has it"));
  come_back_with_next();
  for (int s = 0; s < 40 && state_of(task) == TaskState::kRunning; ++s) {
    answer(*m);
    pass(1'000);
  }
  EXPECT_EQ(state_of(task), TaskState::kQueued) << "the other half is gone";
  EXPECT_EQ(version(), 1u);
  EXPECT_THAT(n->discarded, ElementsAre(Pair("d", 2u)));
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

}  // namespace
}  // namespace tierpilot::testing

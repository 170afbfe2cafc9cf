// What is to be on several nodes is there before a write counts.
#include "write_copies_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

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
TEST_F(WriteCopiesTest, ANodeThatHasNoRoomHoldsUpNothing) {
  ASSERT_NO_FATAL_FAILURE(add_for(2));
  state_->registry.find("m")->slow_free_bytes = 1;
  EXPECT_EQ(state_of(written_on_n()), TaskState::kSucceeded);
  EXPECT_THAT(m->keeps, IsEmpty());
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

// Each who has lost patience asks again.
TEST_F(WriteCopiesTest, SoManyWaitForADatasetAndNoMore) {
  n = with_room("n");
  m = with_room("m");
  std::optional<ErrorCode> refused;
  size_t added = 0;
  const auto ask = [&] {
    datasets_->add(
        "r", "d", ZeroSource{4096}, "n",
        [&](const auto& told) { told ? void(++added) : void(refused = told.error().code); }, 2);
  };
  ask();
  ASSERT_TRUE(posts_.run_until([&] { return !m->keeps.empty(); }));
  for (int i = 0; i < 200; ++i) ask();
  EXPECT_EQ(refused, ErrorCode::kExhausted);
  answer(*m);
  EXPECT_EQ(added, 64u);
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

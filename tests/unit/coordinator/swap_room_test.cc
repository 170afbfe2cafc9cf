// Room for swapping is never given twice, whatever ends, restarts or is lost.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/bytes.h"
#include "coordinator/core/decisions/shortlist.h"
#include "model/swap_room.h"
#include "tests/unit/coordinator/gangs/gang_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Nodes have two units each, and no backlog.
class SwapRoomTest : public Gangs {
 protected:
  Result<Membership::Ticket> try_to_join(const std::string& name, uint64_t room_bytes,
                                         std::shared_ptr<FakeNode> link, uint64_t instance = 7,
                                         const std::set<AttemptId>& live = {}) {
    auto facts = CoreTest::facts(name, instance);
    facts.swap_room_bytes = room_bytes;
    return membership_->join(facts, std::move(link), {}, live);
  }
  std::shared_ptr<FakeNode> join_with(const std::string& name, uint64_t room_bytes,
                                      const std::set<AttemptId>& live = {}) {
    auto link = std::make_shared<FakeNode>();
    const auto ticket = try_to_join(name, room_bytes, link, 7, live);
    EXPECT_TRUE(ticket) << ticket.error().message;
    if (ticket) tickets_[name] = *ticket;
    return link;
  }
  uint64_t accept(uint64_t room_bytes, const std::string& node = {}) {
    auto task = spec();
    task.swap_room_bytes = room_bytes;
    task.node = node;
    const auto receipt = submit({task});
    EXPECT_TRUE(receipt) << receipt.error().message;
    return receipt ? receipt->first_task : 0;
  }
  bool is_given(uint64_t id) { return task(id).state == TaskState::kAssigned; }
  void finish(uint64_t id) {
    ASSERT_TRUE(exit(task(id).node, {id, task(id).attempt}, success()));
    place();
  }
  uint64_t given(const std::string& node) {
    return state_->registry.find(node)->assigned_swap_bytes;
  }
};

TEST_F(SwapRoomTest, ATaskWaitsForItThoughUnitsAreFree) {
  join_with("n", 8 * kGiB);
  const auto first = accept(5 * kGiB), second = accept(5 * kGiB), plain = accept(0);
  place();
  EXPECT_TRUE(is_given(first));
  EXPECT_EQ(task(second).state, TaskState::kQueued);
  EXPECT_THAT(task(second).reason, HasSubstr("room for swapping: no node has 5.0 GiB left"));
  EXPECT_TRUE(is_given(plain)) << "it wants none";
  EXPECT_EQ(given("n"), 5 * kGiB);
  finish(first);
  EXPECT_TRUE(is_given(second));
  finish(second);
  EXPECT_EQ(given("n"), 0u);
}

TEST_F(SwapRoomTest, ItGoesToTheNodeThatHasIt) {
  join_with("a", 0);
  join_with("b", 4 * kGiB);
  const auto id = accept(3 * kGiB);
  place();
  EXPECT_EQ(task(id).node, "b");
}

TEST_F(SwapRoomTest, OneThatWantsLessDoesNotTakeWhatOthersWaitFor) {
  join_with("n", 8 * kGiB);
  const auto first = accept(4 * kGiB), large = accept(6 * kGiB), small = accept(2 * kGiB);
  place();
  EXPECT_TRUE(is_given(first));
  EXPECT_FALSE(is_given(large));
  EXPECT_FALSE(is_given(small));
  EXPECT_THAT(task(small).reason, HasSubstr("a task before it"));
  finish(first);
  EXPECT_TRUE(is_given(large));
  EXPECT_TRUE(is_given(small)) << "beside it there is room for both";
}

TEST_F(SwapRoomTest, OneThatWaitsForTheUnitsOfTheOnlyNodeWithRoomLetsThosePassThatWantNone) {
  join_with("with", 8 * kGiB);
  const auto first = accept(0, "with"), second = accept(0, "with");
  place();
  ASSERT_TRUE(is_given(first) && is_given(second));
  join_with("without", 0);
  const auto waiting = accept(2 * kGiB), plain = accept(0);
  place();
  EXPECT_FALSE(is_given(waiting));
  EXPECT_TRUE(is_given(plain)) << task(plain).reason;
  finish(first);
  EXPECT_EQ(task(waiting).node, "with");
}

TEST_F(SwapRoomTest, WhereOneNodeHasTheRoomAndAnotherTheUnitsOthersPass) {
  join_with("room", 8 * kGiB);
  join_with("units", 8 * kGiB);
  const auto swaps = accept(8 * kGiB, "units"), first = accept(0, "room"),
             second = accept(0, "room");
  place();
  ASSERT_TRUE(is_given(swaps) && is_given(first) && is_given(second));
  const auto waiting = accept(2 * kGiB), plain = accept(0);
  place();
  EXPECT_FALSE(is_given(waiting));
  EXPECT_EQ(task(plain).node, "units") << task(plain).reason;
}

TEST_F(SwapRoomTest, ThoseThatPassLeaveItTheNodesThatItWaitsFor) {
  state_->settings.considered_nodes = 2;
  state_->settings.service_order = ServiceOrder::kArrival;
  join_with("with", 8 * kGiB);
  const auto running = accept(0, "with");
  place();
  ASSERT_TRUE(is_given(running));
  for (int i = 0; i < 3; ++i) join_with(fmt::format("without{}", i), 0);
  auto wide = spec();
  wide.units = 2;
  wide.swap_room_bytes = 2 * kGiB;
  const auto waiting = submit({wide})->first_task;
  std::vector<uint64_t> plain;
  for (int i = 0; i < 7; ++i) plain.push_back(accept(0));
  place();
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(is_given(plain[i])) << i;
  EXPECT_FALSE(is_given(plain[6])) << "the unit that is left is its, of " << task(plain[6]).node;
  finish(running);
  EXPECT_EQ(task(waiting).node, "with");
  finish(plain[0]);
  EXPECT_TRUE(is_given(plain[6]));
}

// However many those before it are, of whom one waits for room.
TEST_F(SwapRoomTest, BehindManyWhoPassOthersGoAndRoomIsStillKept) {
  join_with("n", 8 * kGiB);
  join_with("closed", 0);
  const auto first = accept(5 * kGiB);
  place();
  ASSERT_TRUE(is_given(first));
  state_->registry.find("closed")->order.kind = NodeOrder::Kind::kDrained;
  const auto waiting = accept(6 * kGiB);
  auto bound = spec();
  bound.node = "closed";
  ASSERT_TRUE(submit(std::vector<TaskSpec>(600, bound)));
  const auto small = accept(1 * kGiB), plain = accept(0);
  place();
  EXPECT_TRUE(is_given(plain)) << task(plain).reason;
  EXPECT_FALSE(is_given(small)) << "it would take what comes free";
  finish(first);
  lifecycle_->cancel(waiting, nullptr);
  place();
  EXPECT_TRUE(is_given(small)) << "nobody waits for it any more";
}

TEST_F(SwapRoomTest, WhereRoomIsNotWhatIsMissingNobodyPasses) {
  state_->settings.service_order = ServiceOrder::kArrival;
  join_with("a", 8 * kGiB);
  join_with("b", 8 * kGiB);
  const auto one = accept(0, "a"), other = accept(0, "b");
  place();
  ASSERT_TRUE(is_given(one) && is_given(other));
  auto wide = spec();
  wide.units = 2;
  wide.swap_room_bytes = 2 * kGiB;
  const auto waiting = submit({wide})->first_task, plain = accept(0);
  place();
  EXPECT_FALSE(is_given(plain)) << "it would have to wait for ever";
  finish(one);
  EXPECT_EQ(task(waiting).node, "a");
}

TEST_F(SwapRoomTest, OneThatIsBoundToItsNodeLetsOthersPass) {
  join_with("a", 8 * kGiB);
  join_with("b", 8 * kGiB);
  const auto first = accept(6 * kGiB, "a"), bound = accept(6 * kGiB, "a"), free = accept(6 * kGiB);
  place();
  EXPECT_TRUE(is_given(first));
  EXPECT_THAT(task(bound).reason, HasSubstr("node 'a' does not have 6.0 GiB left"));
  EXPECT_EQ(task(free).node, "b");
}

// Small ones do not keep it waiting for ever.
TEST_F(SwapRoomTest, ThoseForTheSameNodeWaitBehindOneThatIsBoundToIt) {
  join_with("n", 8 * kGiB);
  join_with("m", 8 * kGiB);
  const auto first = accept(5 * kGiB, "n");
  place();
  const auto large = accept(6 * kGiB, "n"), small = accept(1 * kGiB, "n"),
             elsewhere = accept(1 * kGiB, "m"), plain = accept(0, "n");
  place();
  EXPECT_EQ(task(large).state, TaskState::kQueued);
  EXPECT_EQ(task(small).state, TaskState::kQueued) << "it would take what comes free";
  EXPECT_TRUE(is_given(elsewhere));
  EXPECT_TRUE(is_given(plain));
  finish(first);
  EXPECT_TRUE(is_given(large));
}

TEST_F(SwapRoomTest, AfterARestartItIsCountedByWhatRuns) {
  join_with("n", 8 * kGiB);
  const auto first = accept(5 * kGiB), second = accept(5 * kGiB);
  place();
  again();
  EXPECT_EQ(task(second).spec.swap_room_bytes, 5 * kGiB) << "what was asked for is kept";
  const auto node = join_with("n", 8 * kGiB, {{first, 1}});
  EXPECT_EQ(given("n"), 5 * kGiB);
  place();
  EXPECT_THAT(node->started, IsEmpty());
  EXPECT_FALSE(is_given(second));
  finish(first);
  EXPECT_TRUE(is_given(second));
}

TEST_F(SwapRoomTest, OfALostNodeItIsGivenBack) {
  const auto node = join_with("n", 8 * kGiB);
  const auto id = accept(5 * kGiB);
  place();
  clock_.advance_ns(settings_.lease_ms * 2'000'000);
  membership_->expire();
  EXPECT_EQ(given("n"), 0u);
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  const auto other = std::make_shared<FakeNode>();
  ASSERT_TRUE(try_to_join("n", 8 * kGiB, other, 8));
  place();
  EXPECT_THAT(other->started, SizeIs(1));
  EXPECT_EQ(given("n"), 5 * kGiB);
}

TEST_F(SwapRoomTest, ANodeThatComesBackWithLessGivesNoneUntilSoMuchHasEnded) {
  join_with("n", 8 * kGiB);
  const auto first = accept(5 * kGiB);
  place();
  const auto second = accept(1 * kGiB);
  join_with("n", 2 * kGiB, {{first, 1}});
  place();
  EXPECT_FALSE(is_given(second));
  finish(first);
  EXPECT_TRUE(is_given(second));
}

TEST_F(SwapRoomTest, ARefusedOrUnstartedAttemptGivesItBack) {
  const auto node = join_with("n", 8 * kGiB);
  node->refusal = Error{ErrorCode::kExhausted, "too little is left"};
  const auto id = accept(5 * kGiB);
  place();
  EXPECT_FALSE(is_given(id));
  EXPECT_EQ(given("n"), 0u);
}

TEST_F(SwapRoomTest, RanksCountInSumOnANode) {
  const auto a = join_with("a", 8 * kGiB);
  auto wanted = gang(2);
  wanted.swap_room_bytes = 5 * kGiB;
  join_with("away", 8 * kGiB);
  membership_->disconnected(tickets_["away"]);  // known, and not there now
  const auto id = submit({wanted})->first_task;
  place();
  EXPECT_THAT(a->started, IsEmpty()) << "two units, and room for one rank";
  EXPECT_THAT(task(id).reason, HasSubstr("2 ranks"));
  const auto b = join_with("b", 8 * kGiB);
  place();
  EXPECT_THAT(a->started, SizeIs(1));
  EXPECT_THAT(b->started, SizeIs(1));
  EXPECT_EQ(given("a"), 5 * kGiB);
  EXPECT_EQ(given("b"), 5 * kGiB);
  again();
  EXPECT_EQ(given("a"), 5 * kGiB);
  EXPECT_EQ(given("b"), 5 * kGiB);
}

TEST_F(SwapRoomTest, IsFoundAmongMoreNodesThanAreConsidered) {
  state_->settings.considered_nodes = 4;
  for (int i = 0; i < 20; ++i) join_with(fmt::format("n{:02}", i), i < 18 ? 2 * kGiB : 8 * kGiB);
  state_->registry.assign(*state_->registry.find("n18"), {1000, 1}, 1, 7 * kGiB);
  const auto id = accept(4 * kGiB);
  std::vector<std::string> names;
  for (const auto* node : shortlist(*state_, task(id), 0)) names.push_back(node->facts.name);
  EXPECT_THAT(names, ElementsAre("n19"));
  place();
  EXPECT_EQ(task(id).node, "n19");
}

TEST_F(SwapRoomTest, ANodeThatOffersMoreThanCanBeCountedIsRefused) {
  const auto refused = try_to_join("n", kMostSwapRoomBytes + 1, std::make_shared<FakeNode>());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("[swap]"));
  EXPECT_TRUE(try_to_join("n", kMostSwapRoomBytes, std::make_shared<FakeNode>()));
}

}  // namespace
}  // namespace tierpilot::testing

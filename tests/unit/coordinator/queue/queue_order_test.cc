// In which order the tasks that wait for room are asked about
// (policies/scheduling/service_order.h).
#include <gmock/gmock.h>

#include <cmath>

#include "coordinator/core/dispatch/next_task.h"
#include "core_fixture.h"
#include "holding_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSecond_ns = 1'000'000'000;

// One node "n" with room for everything, unless a test fills it. Nobody knows yet how fast it is:
// 1e9 operations are taken to last a second.
class QueueOrderTest : public CoreTest {
 protected:
  QueueOrderTest() {
    settings_.backlog_units = 1000;
    restart();
    join("n");
  }

  static TaskSpec work(double operations, std::vector<DatasetUse> datasets = {}) {
    auto wanted = spec();
    wanted.float_operations = operations;
    wanted.datasets = std::move(datasets);
    return wanted;
  }
  uint64_t queue(TaskSpec wanted) { return submit({std::move(wanted)})->first_task; }
  uint64_t queue_after(int64_t seconds, TaskSpec wanted) {
    clock_.advance_ns(seconds * kSecond_ns);
    return queue(std::move(wanted));
  }
  // 0: nobody's.
  uint64_t whose_turn() {
    const auto next = next_task(*state_, gangs_->policies());
    return next.task ? next.task->id : 0;
  }
  // All whose turn comes, one after the other, as they are given to the node.
  std::vector<uint64_t> order() {
    std::vector<uint64_t> ids;
    for (uint64_t id = whose_turn(); id != 0; id = whose_turn()) {
      ids.push_back(id);
      assign(id, "n");
    }
    return ids;
  }
  // A task shows how fast the node is.
  void show_pace(double operations_per_s) {
    const auto id = queue(work(operations_per_s));
    auto& task = *state_->tasks.find(id);
    const auto attempt = assign(id, "n");
    state_->registry.find("n")->count(task, operations_per_s, 0);
    auto end = success();
    end.wall_ns = kSecond_ns;
    ASSERT_TRUE(exit("n", attempt, end));
  }
  // On node "n", in fast or in slow memory only.
  void add_data(const std::string& name, bool fast) {
    add_dataset(name, 32 << 20, "n");
    membership_->replica_changed("n", name, {1, 32 << 20, fast, !fast});
  }
  const std::string& reason_of(uint64_t id) { return state_->tasks.find(id)->reason; }
};

TEST_F(QueueOrderTest, WhatIsMoreUrgentComesFirstWhateverItTakes) {
  auto later = work(1e8);
  later.priority = -1;
  auto urgent = work(1e12);
  urgent.priority = 1;
  const uint64_t last = queue(later), middle = queue(work(1e9)), first = queue(urgent);
  EXPECT_THAT(order(), ElementsAre(first, middle, last));
}

TEST_F(QueueOrderTest, TheShortestIsServedFirst) {
  const auto long_one = queue(work(9e9)), longer = queue(work(1e10)), short_one = queue(work(1e9));
  EXPECT_THAT(order(), ElementsAre(short_one, long_one, longer));
}

TEST_F(QueueOrderTest, OfEquallyLongOnesTheNarrowestIsServedFirst) {
  auto wide = work(1e9);
  wide.units = 2;
  const auto first = queue(wide), second = queue(work(1e9));
  EXPECT_THAT(order(), ElementsAre(second, first));
}

TEST_F(QueueOrderTest, ALongTaskIsOvertakenForFiveTimesTheDifferenceAndNoLonger) {
  const auto long_one = queue(work(11e9));
  const auto in_time = queue_after(49, work(1e9)), too_late = queue_after(2, work(1e9));
  EXPECT_THAT(order(), ElementsAre(in_time, long_one, too_late));
}

TEST_F(QueueOrderTest, TasksThatDoNotTellAreServedInTheOrderOfArrival) {
  std::vector<uint64_t> ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(queue(spec()));
    if (i == 2) show_pace(1.1e9);
    clock_.advance_ns(1'000'000);
  }
  const int64_t reckoning = state_->reckoning;
  EXPECT_EQ(order(), ids);
  EXPECT_EQ(state_->reckoning, reckoning) << "for so little not all are placed anew";
}

TEST_F(QueueOrderTest, ByArrivalNothingElseCounts) {
  settings_.service_order = ServiceOrder::kArrival;
  restart();
  join("n");
  add_data("cold", false);
  const auto cold = queue(work(1e10, {{"cold", false}})), short_one = queue_after(1, work(1));
  const auto last = queue(spec());
  show_pace(1e12);
  EXPECT_THAT(order(), ElementsAre(cold, short_one, last));
  EXPECT_EQ(state_->reckoning, 0) << "nor do nodes care when they were told";
}

// Or all that the first tasks of a cluster were expected to take would be held against them.
TEST_F(QueueOrderTest, EqualTasksKeepTheirOrderWhenItIsSeenHowFastTheClusterIs) {
  const auto before = queue(work(1e12));
  const int64_t reckoning = state_->reckoning;
  show_pace(1e12);
  const auto after = queue_after(1, work(1e12)), longer = queue(work(3e12));
  EXPECT_THAT(order(), ElementsAre(before, after, longer));
  EXPECT_GT(state_->reckoning, reckoning) << "nodes are told that places have changed";
}

TEST_F(QueueOrderTest, EqualTasksOfIntegersKeepTheirOrderWhenItIsSeenWhatThoseCost) {
  auto integers = spec();
  integers.int_operations = 1e12;
  const auto before = queue(integers);
  auto dear = facts("n");
  dear.int32_to_float = 0.01;
  ASSERT_TRUE(membership_->join(dear, std::make_shared<FakeNode>(), {}, {}));
  const auto after = queue_after(1, integers), floats = queue(work(1e11));
  EXPECT_THAT(order(), ElementsAre(before, after, floats));
}

TEST_F(QueueOrderTest, AClockThatWentAheadForAWhileHoldsNobodyBack) {
  constexpr int64_t kDay_ms = 86'400'000;
  clock_.step_wall_ms(kDay_ms);
  const auto ahead = queue(work(1e9));
  clock_.step_wall_ms(-kDay_ms);
  restart();
  join("n");
  const auto after = queue_after(5, work(1e9));
  EXPECT_THAT(order(), ElementsAre(ahead, after));
}

TEST_F(QueueOrderTest, ALaterReckoningHasAHigherNumberWhateverTheClockSays) {
  const int64_t before = state_->reckoning;
  clock_.step_wall_ms(-86'400'000);
  restart();
  EXPECT_GT(state_->reckoning, before);
}

TEST_F(QueueOrderTest, TheOrderSurvivesARestart) {
  const auto long_one = queue(work(11e9));
  const auto in_time = queue_after(49, work(1e9)), too_late = queue_after(2, work(1e9));
  clock_.advance_ns(1000 * kSecond_ns);
  restart();
  join("n");
  EXPECT_THAT(order(), ElementsAre(in_time, long_one, too_late));
}

TEST_F(QueueOrderTest, ATaskThatIsTriedAgainStandsWhereItStood) {
  const auto first = queue(work(2e9));
  const auto attempt = assign(first, "n");
  const auto shorter = queue_after(3, work(1e9)), later = queue_after(10, work(1e9));
  TaskExit lost;
  lost.how = TaskEnd::kLost;
  ASSERT_TRUE(exit("n", attempt, lost));
  EXPECT_THAT(order(), ElementsAre(shorter, first, later));
}

TEST_F(QueueOrderTest, ATaskWhoseDataIsFarIsServedLaterButIsWhenNothingElseWaits) {
  add_data("warm", true);
  add_data("cold", false);
  const auto cold = queue(work(1e8, {{"cold", false}}));
  const auto half = queue(work(1.1e8, {{"warm", false}, {"cold", false}}));
  const auto warm = queue(work(1.2e8, {{"warm", false}})), none = queue(work(1.3e8));
  EXPECT_EQ(whose_turn(), warm);
  EXPECT_THAT(reason_of(cold), HasSubstr("no node with room has its data"));
  EXPECT_EQ(reason_of(warm), "");
  EXPECT_THAT(order(), ElementsAre(warm, none, cold, half));
}

TEST_F(QueueOrderTest, DataInTheFastMemoryOfANodeThatIsAwayIsFar) {
  join("away");
  add_data("warm", true);
  add_data("far", false);
  membership_->replica_changed("away", "far", {1, 32 << 20, true, true});
  const auto far = queue(work(1e8, {{"far", false}})), warm = queue(work(1.2e8, {{"warm", false}}));
  EXPECT_EQ(whose_turn(), far);
  membership_->disconnected(tickets_["away"]);
  EXPECT_THAT(order(), ElementsAre(warm, far));
}

TEST_F(QueueOrderTest, DataInTheFastMemoryOfAFullNodeIsFar) {
  join("full");
  add_data("warm", true);
  add_data("far", false);
  membership_->replica_changed("full", "far", {1, 32 << 20, true, true});
  const auto far = queue(work(1e8, {{"far", false}})), warm = queue(work(1.2e8, {{"warm", false}}));
  EXPECT_EQ(whose_turn(), far);
  state_->registry.find("full")->assigned_units = 2000;
  EXPECT_THAT(order(), ElementsAre(warm, far));
}

TEST_F(QueueOrderTest, DataInTheFastMemoryOfAnotherNodeThanItsOwnIsFar) {
  join("other");
  add_data("warm", true);
  add_data("far", false);
  membership_->replica_changed("other", "far", {1, 32 << 20, true, true});
  auto bound = work(1e8, {{"far", false}});
  bound.node = "n";
  const auto far = queue(bound), warm = queue(work(1.2e8, {{"warm", false}}));
  EXPECT_THAT(order(), ElementsAre(warm, far));
}

TEST_F(QueueOrderTest, FarDataIsNoReasonToWaitForeverForThoseThatComeLater) {
  add_data("warm", true);
  add_data("cold", false);
  const auto cold = queue(work(1e8, {{"cold", false}}));
  const auto warm = queue_after(60, work(1e8, {{"warm", false}}));
  EXPECT_THAT(order(), ElementsAre(cold, warm));
}

TEST_F(QueueOrderTest, TheFirstThatCannotBeTakenYetKeepsTheOthersWaiting) {
  settings_.backlog_units = 0;
  restart();
  join("n");
  assign(queue(spec()), "n");
  auto wide = work(1e8);
  wide.units = 2;
  const auto first = queue(wide);
  queue(work(1e9));
  EXPECT_EQ(whose_turn(), 0u);
  EXPECT_EQ(reason_of(first), "waiting for a node with room");
}

TEST_F(QueueOrderTest, TheBlockedAndTheBoundLetOthersPassInTheirOrder) {
  settings_.backlog_units = 0;
  restart();
  join("n");
  join("full");
  for (int i = 0; i < 2; ++i) assign(queue(spec()), "full");
  add_data("written", true);
  add_data("cold", false);
  assign(queue(work(1, {{"written", true}})), "n");
  const auto blocked = queue(work(1e8, {{"written", true}}));
  auto bound = work(1.1e8, {{"cold", false}});
  bound.node = "full";
  const auto elsewhere = queue(bound);
  const auto last = queue(work(9e9)), first = queue(work(8e9));
  EXPECT_EQ(whose_turn(), first);
  EXPECT_THAT(reason_of(blocked), HasSubstr("it writes dataset 'written'"));
  EXPECT_EQ(reason_of(elsewhere), "waiting for room on node 'full'");
  state_->tasks.advance(*state_->tasks.find(first), TaskState::kCancelled);
  EXPECT_EQ(whose_turn(), last);
}

TEST_F(QueueOrderTest, ANodeThatSaysNonsenseDoesNotUpsetTheOrder) {
  auto odd = facts("odd");
  odd.int32_to_float = NAN;
  ASSERT_TRUE(membership_->join(odd, std::make_shared<FakeNode>(), {}, {}));
  auto integers = spec();
  integers.int_operations = 1e12;
  const auto before = queue(integers);
  show_pace(1e12);
  const auto after = queue_after(1, integers), longer = queue(work(1e12));
  EXPECT_THAT(order(), ElementsAre(before, after, longer));
}

constexpr auto kShortest = ServiceOrder::kShortest;

// What takes a moment to begin with says nothing about how fast the rest goes.
TEST(QueueOrder, ManySmallPiecesDoNotMakeLargeOnesLookEndless) {
  QueueOrder order;
  for (int i = 0; i < 1000; ++i) order.fetched(1e3, 0.01), order.ran(1e6, 0.05);
  constexpr double kDisk_bytes = 50e9;
  EXPECT_LT(order.far_s(kShortest, static_cast<uint64_t>(kDisk_bytes)), 200);
  ASSERT_TRUE(order.renew(kShortest, 1));
  Task large;
  large.spec.float_operations = 1e12;
  EXPECT_LT(order.place_s(kShortest, large, 0), 1.01e4);
}

TEST(QueueOrder, OneClaimDoesNotUpsetTheOrderForLong) {
  QueueOrder order;
  for (int i = 0; i < 1000; ++i) order.ran(1e9, 1);
  order.ran(1e24, 1);
  for (int i = 0; i < 1000; ++i) order.ran(1e9, 1);
  order.renew(kShortest, 1);
  Task task;
  task.spec.float_operations = 1e9;
  EXPECT_GT(order.place_s(kShortest, task, 0), 0.5) << "it takes a second";
}

TEST_F(HoldingTest, ThoseThatAreKeptBackAreAskedAgainTheShortestFirst) {
  begin();
  const uint64_t long_one = submit_reader(2e7);
  decide(long_one);
  const uint64_t short_one = submit_reader(1e7);
  decide(short_one);
  ASSERT_TRUE(state_->held.waits(long_one) && state_->held.waits(short_one));
  ASSERT_TRUE(exit("b", busy_[0], success()));
  decide(short_one);
  EXPECT_EQ(task(short_one).node, "b");
  decide(long_one);
  EXPECT_TRUE(state_->held.waits(long_one)) << "the room is taken";
}

TEST_F(HoldingTest, ANodeIsToldWhereItsTasksStand) {
  begin();
  const uint64_t id = submit({spec()})->first_task;
  decide(id);
  ASSERT_EQ(task(id).node, "a");
  flush();
  ASSERT_NE(task(id).place_s, 0);
  EXPECT_EQ(a_->assignments.back().place_s, task(id).place_s);
  EXPECT_EQ(a_->assignments.back().reckoning, state_->reckoning);
}

}  // namespace
}  // namespace tierpilot::testing

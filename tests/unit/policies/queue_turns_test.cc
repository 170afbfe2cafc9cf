// In which order the tasks of a queue are tried, and how far a look goes.
#include "policies/scheduling/queue_turns.h"

#include <gmock/gmock.h>

namespace tierpilot {
namespace {

using ::testing::ElementsAre;

constexpr double kBlocked = -1;

struct TestQueue {
  struct Entry {
    double place_s = 0;
    double later_s = 0;
  };
  std::vector<Entry> entries;
  size_t at = 0;

  std::optional<QueuePlace> place() const {
    if (at == entries.size()) return std::nullopt;
    return QueuePlace{entries[at].place_s, at};
  }
  std::optional<double> look() {
    const double later_s = entries[at++].later_s;
    if (later_s == kBlocked) return std::nullopt;
    return later_s;
  }
};

std::vector<uint64_t> order_of(TestQueue queue) {
  QueueTurns turns;
  turns.begin(0);
  std::vector<uint64_t> order;
  while (const auto turn = turns.next(queue)) order.push_back(turn->place.second);
  return order;
}

TEST(QueueTurns, AreByPlaceWhereAllDataIsNear) {
  EXPECT_THAT(order_of({{{1}, {2}, {3}}}), ElementsAre(0, 1, 2));
  EXPECT_THAT(order_of({{{0}, {0}, {0}}}), ElementsAre(0, 1, 2));
}

TEST(QueueTurns, FarDataMakesThemLaterAndBlockedTasksLetOthersPass) {
  EXPECT_THAT(order_of({{{1, 5}, {2, kBlocked}, {3, 1}, {4}, {6}, {7}}}),
              ElementsAre(2, 3, 0, 4, 5));
}

TEST(QueueTurns, NobodyIsLookedAtWhosePlaceIsBehindTheFirstTurn) {
  TestQueue queue{{{1, 2}, {2}, {3}, {4}}};
  QueueTurns turns;
  turns.begin(0);
  EXPECT_EQ(turns.next(queue)->place.second, 1u);
  EXPECT_EQ(queue.at, 2u);
}

TEST(QueueTurns, ALookEndsAfterSoManyBesideThoseThatAreKeptBack) {
  TestQueue queue{std::vector<TestQueue::Entry>(QueueTurns::kMostLookedAt + 3, {0, kBlocked})};
  queue.entries.back() = {1, 0};
  QueueTurns turns;
  turns.begin(1);
  EXPECT_FALSE(turns.next(queue));
  EXPECT_EQ(turns.cut_off(), (QueuePlace{0, QueueTurns::kMostLookedAt + 1}));
  queue.at = 0;
  turns.begin(3);
  EXPECT_TRUE(turns.next(queue));
  EXPECT_FALSE(turns.cut_off());
  queue.at = 2;
  turns.begin(0, 2);
  EXPECT_FALSE(turns.next(queue));
  EXPECT_EQ(queue.at, QueueTurns::kMostLookedAt);
}

}  // namespace
}  // namespace tierpilot

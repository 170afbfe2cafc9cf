// Copies have their times on the link, one at a time each way, and only where there is any.
#include "policies/swap/link_calendar.h"

#include <gtest/gtest.h>

#include <set>

#include "policies/swap/cover.h"
#include "policies/swap/link_use.h"
#include "tests/unit/swap/chain.h"

namespace tierpilot::swap {
namespace {

TEST(Lane, GivesTheEarliestAndTheLatestFreeTime) {
  Lane lane;
  EXPECT_EQ(lane.earliest(5, 10), 5);
  EXPECT_EQ(lane.latest(50, 10), 40);
  lane.take(20, 10);
  EXPECT_EQ(lane.earliest(5, 15), 5);
  EXPECT_EQ(lane.earliest(5, 16), 30) << "not across what is taken";
  EXPECT_EQ(lane.earliest(25, 1), 30);
  EXPECT_EQ(lane.latest(25, 5), 15);
  EXPECT_EQ(lane.latest(35, 6), 14);
  EXPECT_EQ(lane.latest(35, 5), 30);
  EXPECT_LT(lane.latest(15, 20), 0) << "there was no time before the step";
  lane.release(20);
  EXPECT_EQ(lane.earliest(5, 16), 5);
}

TEST(Lane, WhatItGivesIsFree) {
  SeededRandom random(7);
  Lane lane;
  std::set<std::pair<int64_t, int64_t>> taken;
  for (int i = 0; i < 300; ++i) {
    const auto want = static_cast<int64_t>(random.below(2000));
    const auto length = static_cast<int64_t>(1 + random.below(20));
    const auto begin = random.chance(0.5) ? lane.earliest(want, length) : lane.latest(want, length);
    for (const auto& [from, to] : taken) EXPECT_FALSE(begin < to && from < begin + length);
    lane.take(begin, length);
    taken.insert({begin, begin + length});
  }
}

class LinkCalendarTest : public testing::Test {
 protected:
  const Graph graph = chain(40, 3);
  const Timetable timetable{graph};
  const Link link{.gb_per_s = 20, .latency_ns = 100};
};

TEST_F(LinkCalendarTest, ARoundTripIsBetweenItsUsesAndAwayForSomeOfIt) {
  const LinkCalendar calendar(timetable, link);
  const auto trip = calendar.find(3, 70, 1'000'000);
  ASSERT_TRUE(trip);
  EXPECT_GE(trip->out_ns, timetable.start_ns(4));
  EXPECT_LE(trip->back_ns + link.copy_ns(1'000'000) + link.latency_ns, timetable.start_ns(70));
  EXPECT_GT(trip->away_from, 3u);
  EXPECT_LE(trip->back_at, 70u);
  EXPECT_LT(trip->away_from, trip->back_at);
  EXPECT_FALSE(calendar.find(3, 5, 1'000'000'000)) << "it could not be away at all";
}

TEST_F(LinkCalendarTest, ThereIsOnlySoMuchTime) {
  LinkCalendar calendar(timetable, link);
  int trips = 0;
  while (const auto trip = calendar.find(3, 70, 1'000'000)) {
    calendar.take(*trip, 1'000'000);
    ASSERT_LT(++trips, 10'000);
  }
  const auto between_ns = timetable.start_ns(70) - timetable.start_ns(4);
  EXPECT_GT(trips, 0);
  EXPECT_LE(trips * link.copy_ns(1'000'000), between_ns);
}

TEST_F(LinkCalendarTest, WhatIsGivenBackIsThereAgain) {
  LinkCalendar calendar(timetable, link);
  const auto first = calendar.find(3, 70, 1'000'000);
  ASSERT_TRUE(first);
  calendar.take(*first, 1'000'000);
  EXPECT_NE(calendar.find(3, 70, 1'000'000)->out_ns, first->out_ns);
  calendar.release(*first, 1'000'000);
  EXPECT_EQ(calendar.find(3, 70, 1'000'000)->out_ns, first->out_ns);
}

// A plan over the link has no more copies than there is time for.
TEST_F(LinkCalendarTest, APlansCopiesFitTheStep) {
  const auto peak = static_cast<double>(baseline(graph).peak_bytes);
  for (const double gb_per_s : {1.0, 10.0, 100.0}) {
    const Link slow{.gb_per_s = gb_per_s, .latency_ns = 0};
    const auto plan =
        Cover(graph, timetable,
              {.budget_bytes = static_cast<int64_t>(0.5 * peak), .on_time = true, .link = slow})
            .plan();
    int64_t copying_ns = 0;
    for (StorageId storage = 0; storage < graph.storages.size(); ++storage)
      for (const auto& absence : plan.absences[storage])
        if (absence.action == Action::kSwap)
          copying_ns += slow.copy_ns(graph.storages[storage].bytes);
    EXPECT_LE(copying_ns, timetable.start_ns(timetable.end())) << gb_per_s;
  }
}

TEST_F(LinkCalendarTest, TheLinkTakesWhatIsLongestToRecompute) {
  Plan plan{.absences = std::vector<std::vector<Absence>>(graph.storages.size())};
  for (StorageId storage = 1; storage < graph.storages.size(); ++storage) {
    const auto& uses = timetable.uses(storage);
    if (uses.size() > 1 && uses.back() - uses[uses.size() - 2] > 8)
      plan.absences[storage].push_back({uses[uses.size() - 2], uses.back(), Action::kRecompute});
  }
  auto known = timetable;
  const auto changed = with_link(graph, known, {.gb_per_s = 1e5}, plan, 0.3);
  double slowest_kept = 0, fastest_swapped = 1e300;
  int swapped = 0;
  for (StorageId storage = 1; storage < graph.storages.size(); ++storage)
    for (const auto& absence : changed.absences[storage]) {
      const auto maker = graph.tensors[graph.storages[storage].tensors.front()].maker;
      const double worth = static_cast<double>(graph.operators[maker].time_ns) /
                           static_cast<double>(graph.storages[storage].bytes);
      if (absence.action == Action::kSwap) {
        ++swapped;
        fastest_swapped = std::min(fastest_swapped, worth);
      } else {
        slowest_kept = std::max(slowest_kept, worth);
      }
    }
  EXPECT_GT(swapped, 0);
  EXPECT_LE(slowest_kept, fastest_swapped) << "there is time for all";
}

TEST_F(LinkCalendarTest, WhatOnlyRecomputingAsksForCountsAsUsedOnceItIsCopied) {
  auto known = timetable;
  const StorageId storage = graph.tensors[graph.operators[0].outputs.front()].storage;
  const Position last = known.uses(storage).back();
  Absence absence{last, last + 1 < known.end() ? known.end() : last + 1, Action::kRecompute};
  ASSERT_EQ(known.next_use(storage, last), kNone);
  change_way(storage, absence, known);
  EXPECT_EQ(absence.action, Action::kSwap);
  EXPECT_EQ(known.next_use(storage, last), absence.to);
  change_way(storage, absence, known);
  EXPECT_EQ(absence.action, Action::kRecompute);
}

}  // namespace
}  // namespace tierpilot::swap

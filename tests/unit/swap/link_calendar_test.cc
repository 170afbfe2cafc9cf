// Copies have their times on the link, one at a time each way, and only where there is any.
#include "policies/swap/link/link_calendar.h"

#include <gtest/gtest.h>

#include <set>

#include "policies/swap/cover.h"
#include "policies/swap/link/link_use.h"
#include "tests/unit/swap/chain.h"

namespace tierpilot::swap {
namespace {

std::vector<std::pair<int64_t, int64_t>> pairs(const std::vector<Span>& spans) {
  std::vector<std::pair<int64_t, int64_t>> found;
  for (const auto& span : spans) found.emplace_back(span.begin_ns, span.end_ns);
  return found;
}
using Pairs = std::vector<std::pair<int64_t, int64_t>>;

TEST(LinkWay, GivesTheFirstAndTheLastFreeTime) {
  LinkWay lane;
  EXPECT_EQ(pairs(lane.earliest(5, 10)), (Pairs{{5, 15}}));
  EXPECT_EQ(pairs(lane.latest(50, 10)), (Pairs{{40, 50}}));
  lane.take({{20, 30}});
  EXPECT_EQ(pairs(lane.earliest(5, 15)), (Pairs{{5, 20}}));
  EXPECT_EQ(pairs(lane.earliest(5, 16)), (Pairs{{5, 20}, {30, 31}})) << "around what is taken";
  EXPECT_EQ(pairs(lane.earliest(25, 1)), (Pairs{{30, 31}}));
  EXPECT_EQ(pairs(lane.latest(25, 5)), (Pairs{{15, 20}}));
  EXPECT_EQ(pairs(lane.latest(35, 6)), (Pairs{{19, 20}, {30, 35}}));
  EXPECT_EQ(pairs(lane.latest(35, 5)), (Pairs{{30, 35}}));
  EXPECT_LT(lane.latest(15, 20).front().begin_ns, 0) << "there was no time before the step";
  lane.release({{20, 30}});
  EXPECT_EQ(pairs(lane.earliest(5, 16)), (Pairs{{5, 21}}));
  EXPECT_TRUE(lane.earliest(5, 0).empty());
}

// Whatever was taken and given back, by a list of every ns.
TEST(LinkWay, WhatItGivesIsFreeAndAddsUp) {
  SeededRandom random(7);
  LinkWay lane;
  std::set<int64_t> taken;
  std::vector<std::vector<Span>> trips;
  for (int i = 0; i < 400; ++i) {
    if (random.chance(0.3) && !trips.empty()) {
      const auto at = random.below(trips.size());
      lane.release(trips[at]);
      for (const auto& span : trips[at])
        for (int64_t ns = span.begin_ns; ns < span.end_ns; ++ns) taken.erase(ns);
      trips.erase(trips.begin() + static_cast<ptrdiff_t>(at));
      continue;
    }
    const auto want = static_cast<int64_t>(random.below(1000));
    const auto length = static_cast<int64_t>(1 + random.below(20));
    const bool early = random.chance(0.5);
    const auto spans = early ? lane.earliest(want, length) : lane.latest(want, length);
    int64_t sum = 0;
    for (const auto& span : spans) {
      EXPECT_TRUE(early ? span.begin_ns >= want : span.end_ns <= want);
      for (int64_t ns = span.begin_ns; ns < span.end_ns; ++ns, ++sum)
        EXPECT_TRUE(taken.insert(ns).second) << ns;
    }
    EXPECT_EQ(sum, length);
    lane.take(spans);
    trips.push_back(spans);
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
  EXPECT_GE(trip->out.front().begin_ns, timetable.start_ns(4));
  EXPECT_LE(trip->back.back().end_ns + link.latency_ns, timetable.start_ns(70));
  EXPECT_GT(trip->away_from, 3u);
  EXPECT_LE(trip->back_at, 70u);
  EXPECT_LT(trip->away_from, trip->back_at);
  EXPECT_FALSE(calendar.find(3, 5, 1'000'000'000)) << "it could not be away at all";
}

TEST_F(LinkCalendarTest, ThereIsOnlySoMuchTime) {
  LinkCalendar calendar(timetable, link);
  int trips = 0;
  while (const auto trip = calendar.find(3, 70, 1'000'000)) {
    calendar.take(*trip);
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
  calendar.take(*first);
  EXPECT_NE(pairs(calendar.find(3, 70, 1'000'000)->out), pairs(first->out));
  calendar.release(*first);
  EXPECT_EQ(pairs(calendar.find(3, 70, 1'000'000)->out), pairs(first->out));
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

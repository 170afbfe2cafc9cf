#include "policies/sim/events/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace tierpilot::sim {
namespace {

// Near ones, far ones and equal times, while others are taken.
TEST(EventQueue, TakesEventsByTimeAndThenInTheOrderTheyWereAskedFor) {
  EventQueue queue;
  std::map<std::pair<int64_t, uint32_t>, EventKind> expected;
  std::mt19937 random(1);
  int64_t now_ns = 0;
  size_t most = 0;
  for (uint32_t number = 0; number < 20'000;) {
    const bool fills = number / 1000 % 2 == 0;
    for (uint32_t n = random() % (fills ? 4 : 2); n > 0; --n, ++number) {
      const auto kind = random() % 2 ? EventKind::kRunEnd : EventKind::kLost;
      const int64_t at_ns = now_ns + random() % (random() % 4 ? 50 : 5000);
      queue.push(at_ns, kind, number, 7);
      expected[{at_ns, number}] = kind;
    }
    most = std::max(most, expected.size());
    if (expected.empty()) continue;
    const auto [first, kind] = *expected.begin();
    ASSERT_EQ(queue.next_ns(), first.first);
    const Event event = queue.pop();
    ASSERT_EQ(event.subject, first.second);
    ASSERT_EQ(static_cast<EventKind>(event.kind), kind);
    now_ns = event.at_ns;
    expected.erase(expected.begin());
  }
  EXPECT_GT(most, 200u) << "more than lie in a lane";
  for (; !expected.empty(); expected.erase(expected.begin()))
    ASSERT_EQ(queue.pop().subject, expected.begin()->first.second);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, ShowsWhatComesNextThreeTimesOnItsWay) {
  EventQueue queue;
  for (uint32_t task = 0; task < 100; ++task)
    queue.push(1000 - 10 * int64_t{task}, EventKind::kRunEnd, task, 1);
  std::map<uint32_t, std::vector<Soon>> shown;
  while (!queue.empty()) {
    const Event event = queue.pop();
    if (event.subject < 80) EXPECT_EQ(shown[event.subject].size(), 3u) << event.subject;
    queue.show_ahead(event, [&](const Event& next, Soon soon) {
      EXPECT_LT(next.subject, event.subject);
      shown[next.subject].push_back(soon);
    });
  }
  EXPECT_EQ(shown[3], (std::vector{Soon::kLater, Soon::kSoon, Soon::kNext}));
}

}  // namespace
}  // namespace tierpilot::sim
